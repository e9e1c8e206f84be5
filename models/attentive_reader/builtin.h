// "who-did": synthetic passages of facts about entities, with questions for one of them, so that
// the reader can be tried without a download.
#pragma once

#include "frontend/task/batch.h"
#include "models/attentive_reader/question.h"

namespace keel::models {

// 10,000, 1,000 and 1,000 questions for training, validation and testing, always the same ones.
//   fact      `@entityA verb @entityB .`, two different entities of 20 and a verb of 12, all
//             equally likely, and after it 0 to 4 filler words of 164, word r with a probability
//             in proportion to 1 / r
//   passage   6 facts
//   question  one of the facts with either side replaced by @placeholder; facts are drawn again
//             until only one entity answers it
//   answer    that entity
std::vector<Question> make_who_did_part(task::Split split);
QuestionCorpus make_who_did();

}  // namespace keel::models

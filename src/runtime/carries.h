// What one run of a program leaves to the next without being part of a model: the memory of a
// language model, the state of a recurrent network, the keys and values of a search. A training, an
// evaluation and a search have carries of their own, so that none reads what another has left.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "src/runtime/backend.h"

namespace keel {

// The value of one carry. Programs of different batches have it in different shapes; the shape that
// was run last is the one that it holds, and it begins as zeros in any other.
class Carry {
 public:
  // The carry in one of its shapes: where a program reads and writes it.
  struct Form {
    TensorType type;  // as it is stored
    std::shared_ptr<Memory> memory;
  };

  explicit Carry(DType declared) : declared_(declared) {}
  DType declared() const { return declared_; }

  // Forms take turns in one block. One that needs more than those before it gets a new block, for
  // addresses must not move under a program; forms that are made later share the new one.
  const Form& form(Backend& backend, const Shape& shape);
  // Makes it hold a value of this form: the one that it has or, if it holds another form or
  // nothing, zeros. Allocates in the second case alone.
  void enter(const Form& form) {
    if (held_ != &form) hold(form, Tensor(form.type));
  }
  void hold(const Form& form, const Tensor& value);
  void clear() { held_ = nullptr; }
  // The form that it holds a value in; null: nothing since it was made or cleared.
  const Form* held() const { return held_; }
  std::int64_t bytes() const;

 private:
  DType declared_;
  std::deque<Form> forms_;  // programs refer to them
  const Form* held_ = nullptr;
};

class Carries {
 public:
  explicit Carries(Backend& backend) : backend_(backend) {}
  Carries(const Carries&) = delete;
  Carries& operator=(const Carries&) = delete;

  // A carry as a program has it.
  struct Place {
    Carry* carry = nullptr;
    const Carry::Form* form = nullptr;

    void enter() const { carry->enter(*form); }
  };
  // Where programs have the carry of this name in this type; made if it is not there. Throws
  // Error{kUsage} when one of the name has other elements.
  Place place(const std::string& name, const TensorType& type);

  // Makes all of them begin as zeros.
  void clear();
  // The values that they hold, in the storage type.
  std::map<std::string, Tensor> read() const;
  // Clears them, then gives those named their values. Throws Error{kBadInput} for a name that no
  // program has, and for a value of whole numbers where others are expected or the other way round;
  // then they are as they were.
  void write(const std::map<std::string, Tensor>& values);
  // Of the backend's memory.
  std::int64_t bytes() const;

 private:
  Backend& backend_;
  std::map<std::string, Carry> carries_;
};

}  // namespace keel

// Carries: values that one execution of a program leaves to the next but that are not part of the
// model, such as the memory of a language model, the state of a recurrent network, the keys and
// values of a search. Training, evaluation and search each have their own, so none reads another's.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>

#include "src/runtime/backend.h"

namespace keel {

// The value of one carry. Programs with different batch shapes have it in different shapes, but
// only the shape used last holds a value: a program with another shape begins with zeros.
class Carry {
 public:
  // The carry in one of its shapes: the memory that a program reads and writes.
  struct Form {
    TensorType type;  // as stored
    std::shared_ptr<Memory> memory;
  };

  explicit Carry(DType declared) : declared_(declared) {}
  DType declared() const { return declared_; }

  // The form for a shape. Forms take turns in one memory block. A form too large for it gets
  // a new block, which later forms share; older forms keep theirs, since programs hold addresses.
  const Form& form(Backend& backend, const Shape& shape);
  // Makes this the form that holds the value, before a program runs. If it is so already, the value
  // stays; otherwise the value becomes zeros, and only that allocates.
  void enter(const Form& form) {
    if (held_ != &form) hold(form, Tensor(form.type));
  }
  void hold(const Form& form, const Tensor& value);
  void clear() { held_ = nullptr; }
  // The form that holds the value; null after construction and clear(), until the next hold().
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

  // The carry, and the form in which one program uses it.
  struct Place {
    Carry* carry = nullptr;
    const Carry::Form* form = nullptr;

    void enter() const { carry->enter(*form); }
  };
  // Returns the place of the carry with this name and type, and creates it if needed. Throws
  // Error{kUsage} if a carry of this name has another element type.
  Place place(const std::string& name, const TensorType& type);

  // Makes all carries begin as zeros.
  void clear();
  // The values that the carries hold, in the storage type.
  std::map<std::string, Tensor> read() const;
  // Clears all carries and sets the named ones. Throws Error{kBadInput}, before it changes any, if
  // no program has a carry of a given name, or if a value is of integers where floating elements
  // are expected or the other way round.
  void write(const std::map<std::string, Tensor>& values);
  // Bytes of the backend's memory that the carries take.
  std::int64_t bytes() const;

 private:
  Backend& backend_;
  std::map<std::string, Carry> carries_;
};

}  // namespace keel

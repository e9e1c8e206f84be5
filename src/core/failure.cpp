#include "src/core/failure.h"

#include <new>
#include <system_error>

namespace keel {
namespace {

// Threads and processes beyond what the system grants are a lack of memory to the user.
ErrorKind kind_of(const std::system_error& error) {
  const bool is_scarce = error.code() == std::errc::resource_unavailable_try_again ||
                         error.code() == std::errc::not_enough_memory;
  return is_scarce ? ErrorKind::kMemory : ErrorKind::kIo;
}

// The failure of a library's exception, which says nothing but its text.
Failure unknown_failure(const std::string& text) {
  // oneTBB's, of a thread that it cannot start.
  if (text.starts_with("pthread_create")) return {ErrorKind::kMemory, text};
  return {ErrorKind::kInternal, "a bug of keel: " + text};
}

}  // namespace

Failure current_failure() {
  try {
    throw;
  } catch (const Error& error) {
    return {error.kind(), error.what()};
  } catch (const std::bad_alloc&) {
    return {ErrorKind::kMemory, "out of memory"};
  } catch (const std::system_error& error) {
    return {kind_of(error), error.what()};
  } catch (const std::exception& error) {
    return unknown_failure(error.what());
  } catch (...) {
    return unknown_failure("something unknown was thrown");
  }
}

}  // namespace keel

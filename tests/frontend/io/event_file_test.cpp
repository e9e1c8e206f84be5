// Event files, byte for byte as TensorBoard's own code writes them.
#include "frontend/io/event_file.h"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "tests/support/fault.h"
#include "tests/support/temp_dir.h"

using namespace keel;
using namespace keel::io;
using test::read_bytes;
using test::TempDir;

namespace {

std::string from_hex(std::string_view hex) {
  std::string bytes;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    bytes += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return bytes;
}

}  // namespace

TEST_CASE("event_file: crc32c has its published values") {
  // RFC 3720, B.4, and the usual check value.
  CHECK(crc32c("") == 0);
  CHECK(crc32c("123456789") == 0xE3069283u);
  CHECK(crc32c(std::string(32, '\0')) == 0x8A9136AAu);
  CHECK(crc32c(std::string(32, '\xff')) == 0x62A8AB43u);
}

TEST_CASE("event_file: the bytes are those of TensorBoard 2.21's protobufs and record crcs") {
  const TempDir dir;
  {
    EventFile events(dir.path(), 1700000000.25, 300);
    events.add_scalar("loss", 128, 0.75f, 1700000001.5);
    events.add_scalar(std::string(200, 'x'), -1, -1e-3f, 1700000002.5);
  }
  const std::string golden =
      from_hex(
          "1800000000000000a37f4b220900001040fc54d9411a0d627261696e2e4576656e743a32338d2fe9"
          "100000000000000095fbfe180900001040fc54d94110ac023a0208016b3b88f11b00000000000000"
          "1a0d9e130900006040fc54d9411080012a0d0a0b0a046c6f7373150000403fe8475f83ea00000000"
          "000000ace9258c090000a040fc54d94110ffffffffffffffffff012ad3010ad0010ac801") +
      std::string(200, 'x') + from_hex("156f1283bab37c2f3f");
  CHECK(read_bytes(dir / "events.out.tfevents.1700000000.250000.keel") == golden);
}

TEST_CASE("event_file: settings and the end are as TensorBoard 2.21's plugin hparams writes them") {
  const TempDir dir;
  {
    EventFile events(dir.path(), 0);
    const std::vector<std::pair<std::string, std::string>> settings{
        {"model.norm", "none"}, {"train.lr", "0.001"}, {"train.nesterov", "true"}};
    events.add_settings(settings, 1700000001.5);
    events.add_end(/*success=*/true, 1700000002.5);
  }
  const std::string golden = from_hex(
      "92000000000000002747ac500900006040fc54d9412a86010a83010a1c5f68706172616d735f2f73657373696f6e"
      "5f73746172745f696e666f42060801120212004a5b0a590a0768706172616d73124e1a4c0a140a0a6d6f64656c2e"
      "6e6f726d12061a046e6f6e650a150a08747261696e2e6c72120911fca9f1d24d62503f0a140a0e747261696e2e6e"
      "65737465726f76120220012900006040fc54d94161a5e94c"
      "4d000000000000003d63d4a6090000a040fc54d9412a420a400a1a5f68706172616d735f2f73657373696f6e5f65"
      "6e645f696e666f42060801120212004a1a0a180a0768706172616d73120d220b0801110000a040fc54d9418b564e"
      "57");
  CHECK(read_bytes(dir / "events.out.tfevents.0000000000.000000.keel").ends_with(golden));
}

TEST_CASE("event_file: a first run says nothing of steps") {
  const TempDir dir;
  EventFile events(dir.path(), 0.5);
  CHECK(read_bytes(dir / "events.out.tfevents.0000000000.500000.keel").size() == 40);
}

TEST_CASE("event_file: an existing file is not written over, and a full disk is an error") {
  const TempDir dir;
  EventFile events(dir.path(), 7);
  CHECK_THROWS_AS(EventFile(dir.path(), 7), Error);
  CHECK_THROWS_AS(EventFile(dir / "missing", 7), Error);
  test::FaultGuard guard({.at = 0, .error = ENOSPC});
  CHECK_THROWS_AS(events.add_scalar("x", 1, 1, 8), Error);
}

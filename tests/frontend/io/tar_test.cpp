// Files in tar archives of every form, members that are no files, and archives that are broken.
#include "frontend/io/tar.h"

#include "tests/support/input_checks.h"
#include "tests/support/tar.h"

namespace keel::io {
namespace {

using test::tar_member;

const std::string kLongName = "books/" + std::string(120, 'n') + ".txt";

std::vector<std::string> names_of(const TarFiles& tar) {
  std::vector<std::string> names;
  for (const TarEntry& entry : tar.files) names.push_back(entry.name);
  return names;
}

using Names = std::vector<std::string>;

TEST_CASE("tar: files come as they were put in, an empty one and one of whole blocks too") {
  const std::string block(1024, 'z');
  const std::string bytes =
      test::tar({{"a", "first"}, {"empty", ""}, {"b", block}, {"c", std::string_view("x\0y", 3)}});
  const TarFiles tar = read_tar(bytes, "here");
  REQUIRE(names_of(tar) == Names{"a", "empty", "b", "c"});
  CHECK(tar.files[0].content == "first");
  CHECK(tar.files[1].content.empty());
  CHECK(tar.files[2].content == block);
  CHECK(tar.files[3].content == std::string_view("x\0y", 3));
  CHECK(tar.skipped.note() == "");
  CHECK(read_tar(test::tar({}), "here").files.empty());
}

TEST_CASE("tar: long names of GNU and of PAX, and names beyond ASCII") {
  const std::string named = test::pax_record("path=" + kLongName);
  const std::string foreign = test::pax_record("path=\xC3\xA9.txt");
  for (const std::string& bytes :
       {tar_member({"././@LongLink", kLongName + '\0', 'L'}) + tar_member({"short", "text"}),
        tar_member({"x", named, 'x'}) + tar_member({"short", "text"}),
        tar_member({"g", test::pax_record("comment=all"), 'g'}) + tar_member({"x", named, 'x'}) +
            tar_member({"short", "text"})}) {
    const std::string archive =
        bytes + tar_member({"x", foreign, 'x'}) + tar_member({"e", "more"}) + test::tar_end;
    const TarFiles tar = read_tar(archive, "here");
    CHECK(names_of(tar) == Names{kLongName, "\xC3\xA9.txt"});
    CHECK(tar.files[0].content == "text");
    CHECK(tar.files[1].content == "more");
    CHECK(tar.skipped.note() == "");
  }
}

TEST_CASE("tar: links are read as the files that they lead to") {
  const std::string long_link = tar_member({"././@LongLink", kLongName + '\0', 'K'});
  const std::string bytes =
      tar_member({"././@LongLink", kLongName + '\0', 'L'}) + tar_member({"short", "text"}) +
      long_link + tar_member({"hard.txt", "", '1', "short"}) +
      tar_member({"books/soft.txt", "", '2', "../later.txt"}) +
      tar_member({"softer.txt", "", '2', "books/soft.txt"}) + tar_member({"./later.txt", "late"}) +
      tar_member({"later.txt", "", '1', "later.txt"}) +
      tar_member({"lost.txt", "", '1', "nowhere"}) + tar_member({"out.txt", "", '2', "/etc/x"}) +
      tar_member({"ring", "", '2', "ring2"}) + tar_member({"ring2", "", '2', "ring"}) +
      test::tar_end;
  const TarFiles tar = read_tar(bytes, "here");
  CHECK(names_of(tar) ==
        Names{kLongName, "hard.txt", "books/soft.txt", "softer.txt", "./later.txt"});
  CHECK(tar.files[1].content == "text");
  CHECK(tar.files[2].content == "late");
  CHECK(tar.files[3].content == "late");
  CHECK(tar.skipped.note() == "; left out: links to no file in it: 4");
}

TEST_CASE("tar: hidden files, devices and whatever else is no file is counted") {
  const std::string bytes = test::tar({{"d/", "", '5'},
                                       {"./._books", "mac"},
                                       {"d/._a.txt", "mac"},
                                       {".git/a.txt", "hidden"},
                                       {"./d/../d/a.txt", "text"},
                                       {"tty", "", '3'},
                                       {"disk", "", '4'},
                                       {"pipe", "", '6'},
                                       {"d/whole.txt", "contiguous", '7'},
                                       {"d/rest.txt", "second half", 'M'}});
  const TarFiles tar = read_tar(bytes, "here");
  CHECK(names_of(tar) == Names{"./d/../d/a.txt", "d/whole.txt"});
  CHECK(tar.skipped.note() ==
        "; left out: devices: 2, hidden: 3, members of an unknown type: 1, pipes: 1");
}

TEST_CASE("tar: archives one after another, and files of one name, of which the last counts") {
  const std::string bytes = test::tar({{"a", "old"}, {"b", "text"}}) + test::tar({{"./a", "new"}});
  const TarFiles tar = read_tar(bytes, "here");
  CHECK(names_of(tar) == Names{"./a", "b"});
  CHECK(tar.files[0].content == "new");
  CHECK(tar.skipped.note() == "; left out: replaced by later ones: 1");
}

// A map of one piece of three bytes that ends a file of `size` bytes.
std::string with_hole(const std::string& size, const std::string& place) {
  const std::string head = test::pax_record("GNU.sparse.size=" + size) +
                           test::pax_record("GNU.sparse.numblocks=1") +
                           test::pax_record("GNU.sparse.map=" + place + ",3") +
                           test::pax_record("GNU.sparse.name=a.txt");
  return tar_member({"x", head, 'x'}) + tar_member({"GNUSparseFile.1/a.txt", "end"}) +
         tar_member({"b.txt", "text"}) + test::tar_end;
}

TEST_CASE("tar: files that were packed without their holes") {
  const std::string bytes = with_hole("1000", "997");
  const TarFiles tar = read_tar(bytes, "here");
  REQUIRE(names_of(tar) == Names{"a.txt", "b.txt"});
  CHECK(tar.files[0].content == std::string(997, '\0') + "end");
  CHECK(test::refuses(ErrorKind::kBadInput, "here: a.txt: expected files with holes",
                      [&] { read_tar(with_hole("99999999999", "99999999996"), "here"); }));
}

TEST_CASE("tar: what is broken is refused with its place") {
  const auto refused = [](const std::string& bytes, const char* part) {
    CHECK(test::refuses(ErrorKind::kBadInput, part, [&] { read_tar(bytes, "[x] file"); }));
  };
  const std::string good = test::tar({{"folder/a.txt", "first"}, {"b", "second"}});
  refused("", "[x] file: byte 0: expected");
  refused("no archive" + std::string(1000, 'x'), "byte 0: expected a whole tar archive, got: ");
  refused(good.substr(0, 2048), "byte 2048: expected the header of a file or the end mark");
  refused(good.substr(0, 1024), "byte 1024: expected the header of a file or the end mark");
  refused(good.substr(0, 1537), "expected a whole tar archive, got: ");
  refused(good + "more", "expected a whole tar archive, got: ");
  std::string changed = good;
  changed[1030] ^= 1;
  refused(changed, "byte 1024: expected a whole tar archive, got: Damaged tar archive");
}

}  // namespace
}  // namespace keel::io

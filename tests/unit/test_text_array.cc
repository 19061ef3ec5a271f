// Array indexes and job ids in the forms that people write.
#include <random>

#include <doctest/doctest.h>

#include "common/limits.h"
#include "common/proto/job_text.h"
#include "common/text/text.h"

using namespace gantry;
using Ranges = std::vector<IndexRange>;

namespace {

std::string rewritten(std::string_view text) {
  const auto spec = parse_index_ranges(text);
  return spec ? format_array_spec(*spec) : spec.error().message;
}

std::string ref_rewritten(std::string_view text) {
  const auto ref = parse_job_ref(text);
  return ref ? format_job_ref(*ref) : ref.error().message;
}

}  // namespace

TEST_CASE("array indexes become sorted, disjoint ranges") {
  CHECK(parse_index_ranges("0-9:2,15%4") == ArraySpec{{{0, 8, 2}, {15, 15, 1}}, 4});
  CHECK(parse_index_ranges("0-999999")->ranges == Ranges{{0, 999'999, 1}});
  CHECK(rewritten("3") == "3");
  CHECK(rewritten("1-3,7") == "1-3,7");
  CHECK(rewritten("7,1-3") == "1-3,7");
  CHECK(rewritten("5,5,4,3") == "3-5");
  CHECK(rewritten("0-6:2,1-7:2") == "0-7");
  CHECK(rewritten("0-10:100%1") == "0%1");
  CHECK(rewritten("1,3,5,7,20") == "1,3,5,7,20");
}

TEST_CASE("malformed array texts are refused") {
  for (const char* bad : {"", "a", "1-", "-1", "3-1", "1,,2", "1,", "1-5:0", "1%", "1%0", "1%x",
                          "1 ", "1-5:", "4000001", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_index_ranges(bad).has_value());
  }
  CHECK(parse_index_ranges("0-1000000").error().code == ErrorCode::limit_exceeded);
  CHECK(parse_index_ranges("0-999999,5").error().code == ErrorCode::limit_exceeded);
  CHECK(rewritten("1,x") ==
        "array \"1,x\": expected an index or a range such as 0-9 or 0-9:2, with indexes up to "
        "4000000, at position 3");
}

TEST_CASE("compressing indexes keeps the set") {
  std::mt19937 random(11);
  for (int round = 0; round < 500; ++round) {
    std::set<std::uint32_t> wanted;
    for (unsigned i = 0; i < random() % 30; ++i) wanted.insert(random() % 60);
    const std::vector<std::uint32_t> indexes(wanted.begin(), wanted.end());
    const Ranges ranges = compress_indexes(indexes);
    CHECK(count_indexes(ranges) == indexes.size());
    for (std::uint32_t i = 0; i < 60; ++i) CHECK(contains_index(ranges, i) == wanted.contains(i));
    if (!indexes.empty()) {
      const auto again = parse_index_ranges(format_index_ranges(ranges));
      REQUIRE(again.has_value());
      CHECK(again->ranges == ranges);
    }
  }
  CHECK(format_index_ranges(compress_indexes(std::vector<std::uint32_t>{1, 3, 5, 7})) == "1-7:2");
  CHECK(format_index_ranges(compress_indexes(std::vector<std::uint32_t>{1, 2, 9, 12})) ==
        "1-2,9,12");
}

TEST_CASE("job ids are read and written with their array elements") {
  CHECK(parse_job_ref("123") == proto::JobRef{JobId(123), {}});
  CHECK(parse_job_ref("123_7") == proto::JobRef{JobId(123), {{7, 7, 1}}});
  CHECK(parse_job_ref("123_[1-10,12]") == proto::JobRef{JobId(123), {{1, 10, 1}, {12, 12, 1}}});
  CHECK(ref_rewritten("123_1-3") == "123_[1-3]");
  CHECK(ref_rewritten("123_[1-3%2]") == "123_[1-3]");
  for (const char* text : {"123", "123_7", "123_[1-10,12]", "123_[0-8:2]"})
    CHECK(ref_rewritten(text) == text);
  for (const char* bad : {"", "0", "abc", "12x", "-1", "1_", "1_[", "1_[1-3", "1_[]", "1_3]", "1_x",
                          "1_[1-3]x", "1.0", "99999999999999999999"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_job_ref(bad).has_value());
  }
}

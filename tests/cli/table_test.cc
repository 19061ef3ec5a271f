// Tests tables: widths, cutting, delimiters, and text that would do harm on a terminal.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>

#include "cli/columns/account_columns.h"
#include "cli/columns/job_columns.h"
#include "cli/columns/node_values.h"
#include "cli/columns/tenant_columns.h"
#include "cli/table.h"

using namespace gantry;
using namespace gantry::cli;

namespace {

struct Pet {
  std::string name;
  int legs = 4;
};
constexpr Column<Pet> kPetColumns[] = {
    {.letter = 'n',
     .name = "Name",
     .header = "NAME",
     .put = [](std::string& o, const Pet& p) { o += p.name; },
     .width = 6},
    {.letter = 'l',
     .name = "Legs",
     .header = "LEGS",
     .put = [](std::string& o, const Pet& p) { o += std::to_string(p.legs); },
     .width = 4},
};
constexpr std::span<const Column<Pet>> kColumns(kPetColumns);

TableStyle style(bool header, char cut_mark = 0, std::string delimiter = {},
                 bool trailing = false) {
  TableStyle s;
  s.header = header;
  s.rule = cut_mark != 0;
  s.cut_mark = cut_mark;
  s.delimiter = std::move(delimiter);
  s.trailing_delimiter = trailing;
  return s;
}

std::string print(const Layout& layout, TableStyle style, const std::vector<Pet>& pets) {
  char* text = nullptr;
  std::size_t size = 0;
  std::FILE* out = ::open_memstream(&text, &size);
  {
    TableWriter table(layout, std::move(style), out);
    for (const Pet& pet : pets) add_row(table, kColumns, pet);
  }
  std::fclose(out);
  std::string result(text, size);
  std::free(text);
  return result;
}

Layout format(std::string_view text, bool grows = false) {
  const auto columns = infos(kColumns);
  auto layout = parse_format(text, columns, grows);
  REQUIRE_MESSAGE(layout, layout.error().message);
  return *layout;
}
Layout fields(std::string_view text) {
  const auto columns = infos(kColumns);
  auto layout = parse_field_list(text, columns);
  REQUIRE_MESSAGE(layout, layout.error().message);
  return *layout;
}

const std::vector<Pet> kPets{{"cat", 4}, {"centipede", 100}, {"kö", 2}};

}  // namespace

TEST_CASE("squeue's formats set width and alignment of each column") {
  CHECK(print(format("%n %l"), style(false), kPets) == "cat 4\ncentipede 100\nkö 2\n");
  CHECK(print(format("%.5n|%4l|"), {}, kPets) ==
        " NAME|LEGS|\n  cat|4   |\ncenti|100 |\n   kö|2   |\n");
  CHECK(print(format(" <%%n>"), style(false), {{"cat", 4}}) == " <cat>\n");
  CHECK(print(format("plain"), style(false), {{"cat", 4}}) == "plain\n");
  CHECK(print(format("%.4n %l", true), {}, kPets) ==
        "     NAME LEGS\n      cat 4\ncentipede 100\n       kö 2\n");
}

TEST_CASE("sacct's lists of fields set width and alignment of each column") {
  CHECK(print(fields("name,legs"), style(true, '+'), kPets) ==
        "  NAME LEGS\n------ ----\n   cat    4\ncenti+  100\n    kö    2\n");
  CHECK(print(fields("Name%-9,LEGS%3"), style(false), kPets) ==
        "cat         4\ncentipede 100\nkö          2\n");
  CHECK(print(fields("name,legs"), style(true, 0, "|"), kPets) ==
        "NAME|LEGS\ncat|4\ncentipede|100\nkö|2\n");
  CHECK(print(fields("name,legs"), style(false, 0, "|", true), {{"cat", 4}}) == "cat|4|\n");
}

TEST_CASE("control characters cannot reach the terminal") {
  CHECK(print(format("%n"), style(false), {{"a\x1b[31mb\n\x7f", 1}}) == "a?[31mb??\n");
}

TEST_CASE("later rows keep the widths that the first rows gave") {
  std::vector<Pet> pets(5000, Pet{"cat", 4});
  pets.push_back({"a very long name", 1});
  const std::string text = print(format("%n %l", true), style(false), pets);
  CHECK(text.starts_with("cat 4\n"));
  CHECK(text.ends_with("a very long name 1\n"));
}

TEST_CASE("no two columns share a letter or name, and the default formats use known ones") {
  const auto check = [](const std::vector<ColumnInfo>& columns) {
    std::set<char> letters;
    std::set<std::string_view> names;
    for (const ColumnInfo& c : columns) {
      if (c.letter != 0) CHECK(letters.insert(c.letter).second);
      CHECK(names.insert(c.name).second);
    }
  };
  check(infos(job_columns()));
  check(infos(node_columns()));
  check(infos(account_columns()));
  for (std::string_view text : {kQueueFormat, kQueueLongFormat, kQueueStartFormat})
    CHECK(parse_format(text, infos(job_columns())));
  for (std::string_view text : {kInfoFormat, kInfoLongFormat, kInfoNodeFormat, kInfoNodeLongFormat,
                                kInfoReasonFormat, kInfoSummaryFormat})
    CHECK(parse_format(text, infos(node_columns())));
  for (std::string_view text : {kAccountFields, kAccountBriefFields, kAccountLongFields})
    CHECK(parse_field_list(text, infos(account_columns())));
}

TEST_CASE("processor time is printed as in sacct") {
  CHECK(cpu_time(0) == "00:00.000");
  CHECK(cpu_time(1'500'000) == "00:01.500");
  CHECK(cpu_time(3'661'500'000) == "01:01:01");
  CHECK(cpu_time(90'061'000'000) == "1-01:01:01");
}

TEST_CASE("a bar shows own use, borrowed use, and what is free up to the limit") {
  CHECK(bar(0, 64, 192, 12) == "[............]");
  CHECK(bar(64, 64, 192, 12) == "[####........]");
  CHECK(bar(128, 64, 192, 12) == "[####++++....]");
  CHECK(bar(192, 64, 192, 12) == "[####++++++++]");
  // the use is above the limit, as after the limit was lowered
  CHECK(bar(300, 64, 192, 12) == "[###+++++++++]");
  CHECK(bar(5, 0, 0, 4) == "[++++]");
  CHECK(bar(0, 0, 0, 4) == "[....]");
  CHECK(bar(INT64_MAX, INT64_MAX, INT64_MAX, 4) == "[####]");
}

TEST_CASE("a table that grows fits the terminal: words are cut, the last column goes on below") {
  const std::vector<Pet> pets{{"centipede of the sea", 100}, {"cat", 4}};
  TableStyle narrow;
  narrow.columns = 14;
  CHECK(print(format("%n %l", true), narrow, pets) ==
        "NAME      LEGS\ncentiped+ 100\ncat       4\n");
  narrow.columns = 13;
  CHECK(print(format("%n  %l", true), narrow, pets) == "NAME     LEGS\ncentipe+ 100\ncat      4\n");
  narrow.columns = 20;
  CHECK(print(format("%l %n", true), narrow, pets) ==
        "LEGS NAME\n100  centipede of\n     the sea\n4    cat\n");
  narrow.columns = 80;
  CHECK(print(format("%l %n", true), narrow, pets) == print(format("%l %n", true), {}, pets));
  // A format with its own widths is not changed.
  narrow.columns = 5;
  CHECK(print(format("%30n|"), narrow, {{"cat", 4}}) == print(format("%30n|"), {}, {{"cat", 4}}));
}

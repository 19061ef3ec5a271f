// Checks that the audit log comes back whole, and that every way of changing its files is found.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <vector>

#include "common/audit/audit_log.h"
#include "common/audit/audit_reader.h"

using namespace gantry;
using namespace gantry::audit;

namespace {

struct Folder {
  Folder() { REQUIRE(::mkdtemp(path.data()) != nullptr); }
  ~Folder() { std::filesystem::remove_all(path); }
  [[nodiscard]] std::string log() const { return path + "/audit"; }
  [[nodiscard]] std::string file() const { return log() + "/" + files_in(log())->back(); }
  std::string path = "/tmp/gantry-audit.XXXXXX";
};

Record record(const std::string& user, const std::string& about) {
  Record out;
  out.time = Instant{1'790'000'000'000'000};
  out.user = user;
  out.uid = 1000;
  out.how = "munge";
  out.right = "user";
  out.message = "SubmitJob";
  out.about = about;
  out.outcome = "done";
  return out;
}

void write(const std::string& directory, int count) {
  auto log = AuditLog::open(directory, Instant{1});
  REQUIRE_MESSAGE(log, (log ? "" : log.error().message));
  for (int i = 0; i < count; ++i)
    REQUIRE(log->add(record("ann", fmt::format("name=job{} \"quoted\" \\ \n", i))));
  REQUIRE(log->sync());
}

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::string> out;
  for (std::string line; std::getline(in, line);) out.push_back(line);
  return out;
}
void put(const std::string& file, const std::vector<std::string>& lines,
         const std::string& tail = "") {
  std::ofstream out(file, std::ios::trunc);
  for (const std::string& line : lines) out << line << "\n";
  out << tail;
}

std::string verdict(const std::string& directory) {
  const auto chain = walk(directory, {});
  return chain ? fmt::format("whole {}", chain->records) : chain.error().message;
}

}  // namespace

TEST_CASE("records come back as they were written, over restarts") {
  const Folder folder;
  write(folder.log(), 3);
  write(folder.log(), 2);
  std::vector<Record> found;
  const auto chain =
      walk(folder.log(), [&](const Record& r, std::string_view) { found.push_back(r); });
  REQUIRE(chain);
  REQUIRE(found.size() == 5);
  Record wanted = record("ann", "name=job1 \"quoted\" \\ \n");
  wanted.seq = 2;
  CHECK(found[1] == wanted);
  CHECK(found[4].seq == 5);
  CHECK(chain->before == kNoLine);
  CHECK(*holds(folder.log(), chain->head));
  CHECK_FALSE(*holds(folder.log(), std::string(64, 'a')));
  const auto status = std::filesystem::status(folder.log()).permissions();
  CHECK(status == std::filesystem::perms::owner_all);
}

TEST_CASE("each byte that is changed anywhere is found at its record") {
  const Folder folder;
  write(folder.log(), 4);
  const auto good = lines_of(folder.file());
  REQUIRE(verdict(folder.log()) == "whole 4");
  for (std::size_t n = 0; n < good.size(); ++n)
    for (std::size_t at = 0; at < good[n].size(); ++at) {
      auto bad = good;
      bad[n][at] = bad[n][at] == 'x' ? 'y' : 'x';
      put(folder.file(), bad);
      const std::string said = verdict(folder.log());
      CAPTURE(said);
      REQUIRE(said.find(fmt::format(": line {} ", n + 1)) != std::string::npos);
    }
}

TEST_CASE("records that are removed, moved, doubled or made anew are found") {
  const Folder folder;
  write(folder.log(), 5);
  const auto good = lines_of(folder.file());
  const auto says = [&](const std::vector<std::string>& lines, const std::string& tail = "") {
    put(folder.file(), lines, tail);
    return verdict(folder.log());
  };
  CHECK(says({good[0], good[1], good[3], good[4]})
            .find("line 3 has record 4, and the one before "
                  "it is 2") != std::string::npos);
  CHECK(says({good[0], good[2], good[1], good[3]}).find("line 2 has record 3") !=
        std::string::npos);
  CHECK(says({good[0], good[0]}).find("line 2 has record 1") != std::string::npos);
  CHECK(says({good[0], "", good[1]}).find("line 2 is no record") != std::string::npos);
  // A record with a correct hash that does not belong to this chain.
  auto forged = read_line(good[2])->record;
  forged.user = "mallory";
  std::string line = line_of(forged, read_line(good[2])->prev).text;
  line.pop_back();
  CHECK(
      says({good[0], good[1], line, good[3], good[4]}).find("line 4 (record 4) does not follow") !=
      std::string::npos);
  // The beginning may be archived elsewhere; what is missing at the end shows by the head alone.
  CHECK(says({good[2], good[3], good[4]}) == "whole 3");
  CHECK(says({good[0], good[1]}) == "whole 2");
  CHECK_FALSE(*holds(folder.log(), read_line(good[4])->hash));
  // The last line may be in writing.
  CHECK(says({good[0], good[1]}, good[2].substr(0, 40)) == "whole 2");
}

TEST_CASE("an unfinished record is cut off, and the next one says so") {
  const Folder folder;
  write(folder.log(), 2);
  const auto good = lines_of(folder.file());
  for (const std::size_t left : {std::size_t{0}, std::size_t{1}}) {
    put(folder.file(), {good.begin(), good.begin() + static_cast<std::ptrdiff_t>(left)},
        good[left].substr(0, 30));
    write(folder.log(), 1);
    std::vector<Record> found;
    REQUIRE(walk(folder.log(), [&](const Record& r, std::string_view) { found.push_back(r); }));
    REQUIRE(found.size() == left + 2);
    CHECK(found[left].why == "30 bytes of an unfinished record were cut off");
  }
  // The chain cannot continue after a last record that was changed.
  auto bad = lines_of(folder.file());
  bad.back()[20] = '~';
  put(folder.file(), bad);
  const auto refused = AuditLog::open(folder.log(), Instant{1});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find("was changed") != std::string::npos);
}

TEST_CASE("the chain goes on from file to file") {
  const Folder folder;
  {
    auto log = AuditLog::open(folder.log(), Instant{1});
    REQUIRE(log);
    const std::string much(500'000, 'm');
    for (int i = 0; i < 300; ++i) REQUIRE(log->add(record("ann", much)));
    REQUIRE(log->sync());
  }
  CHECK(files_in(folder.log())->size() == 3);
  CHECK(verdict(folder.log()) == "whole 300");
  // A crash may leave a new file without a whole record.
  std::ofstream(folder.log() + "/audit-000000000301.jsonl") << "{\"seq\":301";
  write(folder.log(), 1);
  CHECK(verdict(folder.log()) == "whole 302");
}

TEST_CASE("pages have all records once and in their order, wherever they begin") {
  const Folder folder;
  write(folder.log(), 3'000);  // some 900 KiB
  // Older records are in another file.
  const std::vector<std::string> lines = lines_of(folder.file());
  put(folder.log() + "/audit-000000000001.jsonl", {lines.begin(), lines.begin() + 1'000});
  put(folder.log() + "/audit-000000001001.jsonl", {lines.begin() + 1'000, lines.end()},
      "{\"seq\":3001, unfinished");
  for (const std::size_t most : {1u, 7u, 999u, 5'000u}) {
    CAPTURE(most);
    ChainCheck check;
    std::uint64_t after = most == 1 ? 2'950 : 0;
    std::size_t read = after;
    while (true) {
      const auto page = page_after(folder.log(), after, most, 64 << 10);
      REQUIRE(page);
      CHECK(page->lines.size() <= most);
      for (const std::string& line : page->lines) {
        REQUIRE(line == lines[read++]);
        REQUIRE(check.follow(line));
      }
      CHECK(page->more == (read < lines.size()));
      if (!page->more) break;
      after = check.chain().last;
    }
    CHECK(read == lines.size());
  }
  CHECK(page_after(folder.log(), 3'000, 10, 1 << 20)->lines.empty());
  const auto newest = newest_page(folder.log(), 2'500, 2 << 20);
  REQUIRE(newest);
  CHECK(newest->lines == std::vector<std::string>(lines.begin() + 500, lines.end()));
  CHECK(newest_page(folder.log(), 3, 2 << 20)->lines ==
        std::vector<std::string>(lines.end() - 3, lines.end()));
}

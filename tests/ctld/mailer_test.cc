// Tests the mailer: other users' letters are sent while one user's mail program hangs. The programs
// of triggers wait in a queue of the same kind.
#include "ctld/mailer.h"
#include "ctld/programs.h"
#include "tests/skip.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <sstream>

using namespace gantry;

namespace {

constexpr Uid kDaemon{1}, kBin{2};  // these users exist on every Linux machine

std::string text_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Waits until a file has `wanted` lines, at most 30 s, and returns its text.
std::string lines_of(const std::string& path, int wanted) {
  std::string text;
  for (int i = 0; i < 600; ++i) {
    text = text_of(path);
    if (std::count(text.begin(), text.end(), '\n') >= wanted) break;
    ::poll(nullptr, 0, 50);
  }
  return text;
}

core::Letter letter(Uid uid, const std::string& subject) {
  return {uid, {"someone"}, subject, "Text.\n"};
}

// A directory that every user may write to, with a mail program that notes each subject in a file
// named by the user's id. For the subject "stop" the program stops itself, as its user could stop
// it.
struct Post {
  std::string dir = "/tmp/gantry-mail-XXXXXX";
  std::string program;
  Post() {
    REQUIRE(::mkdtemp(dir.data()) != nullptr);
    ::chmod(dir.c_str(), 0777);
    program = dir + "/sendmail";
    std::ofstream(program) << "#!/bin/sh\nsubject=$(sed -n 's/^Subject: //p')\necho $subject >> "
                           << dir << "/$(id -u)\n[ \"$subject\" != stop ] || { echo $$ > " << dir
                           << "/stopped; kill -STOP $$; }\n[ \"$subject\" != fail ] || exit 3\n";
    ::chmod(program.c_str(), 0755);
  }
  ~Post() {
    const int stopped = std::atoi(text_of(dir + "/stopped").c_str());
    if (stopped > 1) ::kill(stopped, SIGKILL);
    std::filesystem::remove_all(dir);
  }
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;
};

}  // namespace

TEST_CASE("a user who stops the program that sends their mail delays nobody else's mail") {
  if (::geteuid() != 0) SKIP_CASE("sending as several users needs root");
  const Post post;
  {
    ctld::Mailer mailer(post.program, [](const std::string&) {});
    mailer.send({letter(kDaemon, "stop"), letter(kDaemon, "after"), letter(kBin, "one"),
                 letter(kBin, "two"), letter(kBin, "three")});
    CHECK(lines_of(post.dir + "/2", 3) == "one\ntwo\nthree\n");  // the letters keep their order
    CHECK(lines_of(post.dir + "/stopped", 1) != "");
    CHECK(text_of(post.dir + "/1") == "stop\n");
  }
}

TEST_CASE("a user with too many letters loses some of them, and no other user does") {
  if (::geteuid() != 0) SKIP_CASE("sending as several users needs root");
  const Post post;
  std::mutex mutex;
  std::string notes;
  ctld::Mailer mailer(post.program, [&](const std::string& note) {
    std::lock_guard guard(mutex);
    notes += note + "\n";
  });
  std::vector<core::Letter> letters{letter(kDaemon, "stop")};
  for (std::size_t i = 0; i < ctld::kMostLetters; ++i) letters.push_back(letter(kDaemon, "more"));
  mailer.send(std::move(letters));
  mailer.send({letter(kBin, "fail")});
  CHECK(lines_of(post.dir + "/2", 1) == "fail\n");
  std::string noted;
  for (int i = 0; i < 200 && noted.find("ended with 3") == std::string::npos; ++i) {
    ::poll(nullptr, 0, 50);
    std::lock_guard guard(mutex);
    noted = notes;
  }
  CHECK(noted.find("9001 letters dropped") != std::string::npos);
  CHECK(noted.find("ended with 3") != std::string::npos);
}

TEST_CASE("the trigger programs of one user leave room for those of another") {
  if (::geteuid() != 0) SKIP_CASE("sending as several users needs root");
  const Post post;
  const std::string program = post.dir + "/program";
  std::ofstream(program) << "#!/bin/sh\necho $1 >> " << post.dir << "/$(id -u)\n";
  ::chmod(program.c_str(), 0755);
  const auto run = [&](Uid uid, const std::string& argument) {
    core::ProgramRun one;
    one.uid = uid;
    one.program = program;
    one.argument = argument;
    return one;
  };
  std::mutex mutex;
  std::string noted;
  ctld::Programs programs(
      [&](const std::string& text) {
        std::lock_guard guard(mutex);
        noted += text + "\n";
      },
      "");
  std::vector<core::ProgramRun> many(20'000, run(kDaemon, "first"));
  many.push_back(run(kBin, "second"));
  programs.run(std::move(many));
  const std::string ran = lines_of(post.dir + "/2", 1);
  std::lock_guard guard(mutex);
  CHECK_MESSAGE(ran == "second\n", noted);
  CHECK(noted.find("19000 programs dropped") != std::string::npos);
}

TEST_CASE("a trigger's program knows the cluster, whatever characters its own name has") {
  if (::geteuid() != 0) SKIP_CASE("sending as several users needs root");
  const Post post;
  core::ProgramRun run;
  run.uid = kDaemon;
  run.program = post.dir + "/a=b c";
  run.argument = "12";
  std::ofstream(run.program) << "#!/bin/sh\necho \"$GANTRY_CONF $1\" >> " << post.dir << "/told\n";
  ::chmod(run.program.c_str(), 0755);
  std::string noted;
  ctld::Programs programs([&](const std::string& text) { noted += text; }, "/srv/a b/client.conf");
  programs.run({run});
  CHECK_MESSAGE(lines_of(post.dir + "/told", 1) == "/srv/a b/client.conf 12\n", noted);
}

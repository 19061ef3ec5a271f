// Real full file systems: a small tmpfs and a small ext4 are mounted in the mount namespace of a
// child process, and vanish with it. This needs root; without root the test is skipped. A limit on
// the file size stands in for a disk that refuses writes although it has space.
#include <doctest/doctest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statvfs.h>

#include <fstream>

#include "child.h"
#include "store_fixture.h"
#include "tests/skip.h"
#include "workload.h"

namespace gantry::store {

namespace {

constexpr int kCannotMount = 77;

bool run(std::vector<std::string> words) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  pid_t pid = -1;
  int status = -1;
  return ::posix_spawnp(&pid, argv[0], nullptr, nullptr, argv.data(), environ) == 0 &&
         ::waitpid(pid, &status, 0) == pid && status == 0;
}

// The image of the ext4 is on a tmpfs, so that the speed of the real disk does not matter.
bool mount_small(const std::string& kind, const std::string& at) {
  if (::unshare(CLONE_NEWNS) != 0) return false;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return false;
  if (kind == "tmpfs") return ::mount("none", at.c_str(), "tmpfs", 0, "size=8m") == 0;
  if (::mount("none", at.c_str(), "tmpfs", 0, "size=16m") != 0) return false;
  std::string image = at + "/image";
  std::filesystem::resize_file((std::ofstream(image), image), 12 << 20);
  return run({"mkfs.ext4", "-q", "-O", "^has_journal", "-m", "0", image}) &&
         run({"mount", "-o", "loop", image, at});
}

// Writes until the store refuses. With a small `fold_one_in` the refusal may hit a fold or an
// append, with a large one the disk fills faster.
Error write_until_refused(Store& store, std::uint64_t fold_one_in, std::uint64_t& acked) {
  Workload workload(store, 7, fold_one_in);
  for (int i = 0; i < 1'000'000; ++i) {
    auto done = workload.turn();
    if (!done) return done.error();
    acked = store.stats().last.value();
  }
  return {ErrorCode::internal, "it never filled up"};
}

// Runs in the child. The result is 0, or 1 after a report of what is wrong.
int fill_and_recover(const LmdbOptions& options, const std::string& ballast,
                     std::uint64_t fold_one_in, int report) {
  auto wrong = [&](std::string_view what) {
    say(report, what);
    return 1;
  };
  std::uint64_t acked = 0;
  std::string first;
  // Two rounds run with the ballast file, and a third one after its removal. In the first two
  // rounds the store opens, is intact, and refuses again. In the third it works again.
  for (int round = 0; round < 3; ++round) {
    if (round == 2) std::filesystem::remove(ballast);
    auto store = LmdbStore::open(options);
    if (!store) return wrong("open: " + store.error().message);
    if (auto text = Workload::judge(**store, acked); !text.empty()) return wrong(text);
    if (round == 2) {
      Workload workload(**store, 8);
      for (int i = 0; i < 100; ++i)
        if (auto done = workload.turn(); !done) return wrong("after: " + done.error().message);
      return Workload::judge(**store, acked).empty() ? 0 : wrong("not intact after recovery");
    }
    Error error = write_until_refused(**store, fold_one_in, acked);
    if (error.code != ErrorCode::out_of_space) return wrong("code: " + error.message);
    if (error.message.find(options.directory + "/data.mdb") == std::string::npos ||
        error.message.find("free space") == std::string::npos)
      return wrong("sentence: " + error.message);
    AppendBatch more = events_after((*store)->stats().last, 1);
    if ((*store)->append(more).has_value()) return wrong("it writes on after a failure");
    if ((*store)->fold({}).has_value()) return wrong("it folds on after a failure");
  }
  return 0;
}

void run_on(const std::string& kind) {
  TempDirectory directory;
  std::string at = directory.path() + "/mnt";
  std::filesystem::create_directory(at);
  Child child([&](int report) {
    if (!mount_small(kind, at)) return kCannotMount;
    std::string ballast = at + "/ballast";
    std::FILE* f = std::fopen(ballast.c_str(), "w");
    if (f == nullptr) return kCannotMount;
    Bytes zeros(4 << 20, '\0');
    bool written = std::fwrite(zeros.data(), 1, zeros.size(), f) == zeros.size();
    if (std::fclose(f) != 0 || !written) return kCannotMount;
    LmdbOptions options;
    options.directory = at + "/state";
    return fill_and_recover(options, ballast, kind == "tmpfs" ? 8 : 200, report);
  });
  ChildEnd end = child.wait();
  if (end.exit_code == kCannotMount) SKIP_CASE("cannot mount a " + kind + " here");
  CHECK(end.report == "");
  CHECK(end.signal == 0);
  CHECK(end.exit_code == 0);
}

}  // namespace

TEST_CASE("a store on a full tmpfs refuses writes, stays intact, and works again with space") {
  run_on("tmpfs");
}
TEST_CASE("a store on a full ext4 refuses writes, stays intact, and works again with space") {
  run_on("ext4");
}

TEST_CASE("a write that is refused while there is space is an input/output error") {
  TempDirectory directory;
  Child child([&](int report) {
    LmdbOptions options;
    options.directory = directory.path() + "/state";
    auto store = LmdbStore::open(options);
    if (!store) return 1;
    rlimit limit{2 << 20, 2 << 20};
    ::signal(SIGXFSZ, SIG_IGN);
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) return 2;
    std::uint64_t acked = 0;
    Error error = write_until_refused(**store, 200, acked);
    say(report, error.message);
    return error.code == ErrorCode::io_error && acked > 0 ? 0 : 3;
  });
  ChildEnd end = child.wait();
  CHECK(end.exit_code == 0);
  CHECK(end.report.find("check the disk") != std::string::npos);
  LmdbOptions options;
  options.directory = directory.path() + "/state";
  auto store = LmdbStore::open(options);
  REQUIRE(store.has_value());
  CHECK(Workload::judge(**store, 1) == "");
}

}  // namespace gantry::store

// Power loss. The calls of a writer are recorded. For a power loss at any of them, the test builds
// a disk as it may be afterwards: everything that was synced is there, and of the rest each sector
// may be there or not. Every such disk must open, hold everything that was acknowledged before, and
// have no torn batch.
//
// If the test ignores the syncs, it must find faults. This shows that it can see them.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <spawn.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <iterator>

#include "child.h"
#include "store_fixture.h"
#include "workload.h"
#include "write_recorder.h"

namespace gantry::store {

namespace {

constexpr std::size_t kSector = 512;

struct Op {
  RecordedOp op;
  std::uint64_t offset;
  Bytes data;
};

Bytes read_whole(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(in), {});
}

std::vector<Op> read_recording(const std::string& path) {
  Bytes log = read_whole(path);
  std::vector<Op> ops;
  for (std::size_t at = 0; at + sizeof(Recorded) <= log.size();) {
    Recorded head{};
    std::memcpy(&head, log.data() + at, sizeof head);
    at += sizeof head;
    ops.push_back({head.op, head.offset, log.substr(at, head.size)});
    at += head.size;
  }
  return ops;
}

// Runs power_writer on `directory` under the recorder, which writes to `recording`.
void record_run(const std::string& directory, const std::string& recording, int turns) {
  std::vector<std::string> words{GANTRY_POWER_WRITER, directory, "1", fmt::format("{}", turns)};
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  std::string preload = std::string("LD_PRELOAD=") + GANTRY_WRITE_RECORDER;
  std::string record = "GANTRY_RECORD=" + recording;
  char* environment[] = {preload.data(), record.data(), nullptr};
  posix_spawn_file_actions_t files;
  posix_spawn_file_actions_init(&files);
  posix_spawn_file_actions_addopen(&files, kAckFd, "/dev/null", O_WRONLY, 0);
  pid_t pid = -1;
  int status = -1;
  REQUIRE(::posix_spawn(&pid, argv[0], &files, nullptr, argv.data(), environment) == 0);
  posix_spawn_file_actions_destroy(&files);
  REQUIRE(::waitpid(pid, &status, 0) == pid);
  REQUIRE(status == 0);
}

void write_at(Bytes& disk, std::uint64_t offset, std::string_view data) {
  if (disk.size() < offset + data.size()) disk.resize(offset + data.size(), '\0');
  std::copy(data.begin(), data.end(), disk.begin() + static_cast<std::ptrdiff_t>(offset));
}

// The disk while the recorded calls are played back.
class Disk {
 public:
  Disk(Bytes durable, bool honest) : durable_(std::move(durable)), honest_(honest) {}

  void play(const Op& op) {
    if (op.op == RecordedOp::write) pending_.push_back(&op);
    if (op.op == RecordedOp::synced_write) write_at(durable_, op.offset, op.data);
    if (op.op == RecordedOp::ack) std::memcpy(&acked_, op.data.data(), sizeof acked_);
    if (op.op != RecordedOp::sync || !honest_) return;
    for (const Op* write : pending_) write_at(durable_, write->offset, write->data);
    pending_.clear();
  }

  // The power fails during `last`. Of this write and of all writes not yet synced, only some
  // sectors get to the disk.
  template <class Random>
  Bytes lose_power(const Op& last, Random& random) const {
    Bytes disk = durable_;
    // A sector is kept with a chance of `odds` in 4: never, seldom, half of the time, mostly, or
    // always.
    std::uint64_t odds = random() % 5;
    auto keep_some = [&](const Op& write) {
      for (std::size_t at = 0; at < write.data.size();) {
        std::size_t part =
            std::min(kSector - (write.offset + at) % kSector, write.data.size() - at);
        if (random() % 4 < odds)
          write_at(disk, write.offset + at, std::string_view(write.data).substr(at, part));
        at += part;
      }
    };
    for (const Op* write : pending_) keep_some(*write);
    if (last.op == RecordedOp::write || last.op == RecordedOp::synced_write) keep_some(last);
    return disk;
  }

  [[nodiscard]] std::uint64_t acked() const { return acked_; }

 private:
  Bytes durable_;
  bool honest_;
  std::vector<const Op*> pending_;
  std::uint64_t acked_ = 0;
};

// Opens a store on this disk and returns what is wrong with it. Runs in a child because it may
// crash.
std::string judge(const std::string& directory, const Bytes& disk, std::uint64_t acked) {
  std::ofstream(directory + "/data.mdb", std::ios::binary | std::ios::trunc) << disk;
  std::filesystem::remove(directory + "/lock.mdb");
  Child child([&](int report) {
    ::dup2(report, STDERR_FILENO);
    LmdbOptions options;
    options.directory = directory;
    auto store = LmdbStore::open(options);
    std::string wrong = store ? Workload::judge(**store, acked) : store.error().message;
    say(report, wrong);
    return 0;
  });
  ChildEnd end = child.wait();
  if (end.signal != 0) return fmt::format("signal {}: {}", end.signal, end.report);
  return end.report;
}

struct Run {
  Bytes before;
  std::vector<Op> ops;
};

// The result is the number of disks found wrong and the number of disks judged.
std::pair<int, int> lose_power_everywhere(const Run& run, bool honest, std::uint64_t one_in) {
  TempDirectory directory;
  std::mt19937_64 random(512);
  Disk disk(run.before, honest);
  int wrong = 0;
  int judged = 0;
  for (const Op& op : run.ops) {
    if (random() % one_in == 0) {
      ++judged;
      std::string found = judge(directory.path(), disk.lose_power(op, random), disk.acked());
      if (!found.empty()) ++wrong;
      if (honest) CHECK(found == "");
    }
    disk.play(op);
  }
  return {wrong, judged};
}

}  // namespace

TEST_CASE("no power loss takes away what was acknowledged") {
  TempDirectory directory;
  std::string state = directory.path() + "/state";
  LmdbOptions options;
  options.directory = state;
  REQUIRE(LmdbStore::open(options).has_value());
  Run run;
  run.before = read_whole(state + "/data.mdb");
  record_run(state, directory.path() + "/recording", 300);
  run.ops = read_recording(directory.path() + "/recording");
  auto count = [&](RecordedOp op) {
    return std::count_if(run.ops.begin(), run.ops.end(), [&](const Op& o) { return o.op == op; });
  };
  CHECK(count(RecordedOp::ack) == 300);
  CHECK(count(RecordedOp::sync) >= 300);
  CHECK(count(RecordedOp::synced_write) >= 300);  // LMDB writes its meta pages this way.

  auto [wrong, judged] = lose_power_everywhere(run, true, 4);
  CHECK(wrong == 0);
  CHECK(judged > 300);
  MESSAGE(judged, " disks judged, of ", run.ops.size(), " calls");

  auto [seen, of] = lose_power_everywhere(run, false, 40);
  CHECK(seen > of / 4);
  MESSAGE("with the syncs ignored, ", seen, " of ", of, " are found wrong");
}

}  // namespace gantry::store

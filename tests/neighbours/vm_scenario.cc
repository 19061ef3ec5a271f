#include "tests/neighbours/vm_scenario.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

namespace gantry::vm {
namespace {

constexpr int kWarm = 4, kFlood = 10;  // the second in which it is measured, and flooded
constexpr int kLook = 17;              // seconds of flood in which it must be named
// The disk still does what a flood had asked for before it was held, so the first kSettle seconds
// of a hold do not count. The victim is measured in the kBack seconds after them.
constexpr int kSettle = 2, kBack = 6;
constexpr double kDiskRate = 12e6;  // bytes per second, as tests/vm/scenarios.sh asks for
constexpr std::int64_t kNodeMemory = 240 << 20, kOwnMemory = 70 << 20;
constexpr std::size_t kCached = 48 << 20;  // bytes that a victim of memory reads again and again

unsigned network_number(unsigned seed, unsigned job) {
  return seed % 60 * 3 + job;
}

bool of_memory(Kind kind) {
  return kind == Kind::memory || kind == Kind::memory_self;
}

}  // namespace

std::string Seen::line() const {
  const auto number = [](const std::optional<int>& n) { return n ? std::to_string(*n) : "-"; };
  std::string name = kind;
  std::replace(name.begin(), name.end(), ' ', '_');
  return fmt::format("scenario {} {} truth {} named {} right {} wrong {} flooded {} back {}{}",
                     seed, name, has_truth ? 1 : 0, number(named), right, wrong, number(flooded),
                     number(back), text);
}

std::optional<Seen> Seen::of(const std::string& line) {
  std::istringstream in(line);
  Seen out;
  std::string word, named, flooded, back;
  in >> word >> out.seed >> out.kind >> word >> out.has_truth >> word >> named >> word >>
      out.right >> word >> out.wrong >> word >> flooded >> word >> back;
  if (!in && !in.eof()) return std::nullopt;
  if (!line.starts_with("scenario ") || back.empty()) return std::nullopt;
  const auto number = [](const std::string& text) {
    return text == "-" ? std::nullopt : std::optional<int>(std::atoi(text.c_str()));
  };
  out.named = number(named);
  out.flooded = number(flooded);
  out.back = number(back.substr(0, back.find(';')));
  std::replace(out.kind.begin(), out.kind.end(), '_', ' ');
  return out;
}

Scenario::Scenario(unsigned seed, Machine& machine, unsigned lane, std::string disk, SlowDisk* slow)
    : seed_(seed),
      lane_(lane),
      m_(machine),
      facts_(facts_of(seed)),
      disk_(std::move(disk)),
      slow_(slow),
      random_(seed) {
  make_jobs();
  start_victim();
}

Scenario::~Scenario() {
  for (const pid_t pid : pids_) {
    ::kill(-pid, SIGKILL);
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
  for (const auto& job : jobs_) {
    (void)runtime::kill_cgroup(m_.jobs.layout, job.cgroup, seconds(5));
    (void)runtime::remove_cgroup(m_.jobs.layout, job.cgroup, seconds(5));
    if (const auto network = network_of(job.key)) FarEnd::remove(*network);
  }
  const bool slow = facts_.kind == Kind::disk_slow || facts_.kind == Kind::memory_self;
  if (slow && slow_ != nullptr) slow_->delay(0);
  if (of_memory(facts_.kind)) limit_node("max");
}

std::optional<unsigned> Scenario::index_of(const proto::AttemptKey& key) const {
  for (unsigned i = 0; i < jobs_.size(); ++i)
    if (jobs_[i].key == key) return i + 1;
  return std::nullopt;
}

std::optional<unsigned> Scenario::network_of(const proto::AttemptKey& key) const {
  const auto job = index_of(key);
  if (!job || facts_.place != Place::link) return std::nullopt;
  return network_number(seed_, *job);
}

void Scenario::limit_node(const std::string& bytes) const {
  std::ofstream file(m_.jobs.layout.mounts[0].path + "/memory.max");
  if (!(file << bytes << std::flush)) ::_exit(3);
}

void Scenario::make_jobs() {
  if (of_memory(facts_.kind)) limit_node(std::to_string(kNodeMemory));
  for (unsigned i = 1; i <= 3; ++i) {
    sampling::WatchedJob job;
    job.key = {JobId(seed_ * 3ULL + i), Attempt(1)};
    job.cgroup = fmt::format("job_{}.1", job.key.job.value());
    // As on a node that deals out cores: who floods does not run on the victim's.
    if (facts_.place != Place::alone) job.cpus = {static_cast<std::uint16_t>(i == 1 ? 0 : 1)};
    if (facts_.kind == Kind::memory_self && i == 1) job.memory_limit = kOwnMemory;
    runtime::CgroupLimits limits;
    limits.cpus = job.cpus;
    limits.memory = job.memory_limit;
    if (!runtime::create_cgroup(m_.jobs.layout, job.cgroup, limits)) ::_exit(3);
    jobs_.push_back(job);
    if (const auto network = network_of(job.key)) jobs_.back().network_sys = FarEnd::add(*network);
  }
}

template <class Work>
void Scenario::start(unsigned job, const Work& work) {
  const auto entries = job == 0
                           ? std::vector<Fd>{}
                           : runtime::open_cgroup_entries(m_.jobs.layout, jobs_[job - 1].cgroup);
  const auto network = job == 0 ? std::nullopt : network_of(jobs_[job - 1].key);
  const pid_t pid = ::fork();
  if (pid == 0) {
    for (const Fd& entry : entries)
      if (::write(entry.get(), "0", 1) != 1) ::_exit(1);
    if (network) FarEnd::enter(*network);
    work();
    ::_exit(0);
  }
  pids_.push_back(pid);
}

void Scenario::run(unsigned job, const Words& words) {
  start(job, [&] { become(words); });
}

unsigned Scenario::between(unsigned low, unsigned high) {
  return low + static_cast<unsigned>(random_() % (high - low + 1));
}

void Scenario::start_victim() {
  const unsigned seed = seed_ + 1;
  if (facts_.kind != Kind::disk_two) run(3, little_work(3));
  switch (facts_.kind) {
    case Kind::cores:
    case Kind::cores_self:
      for (int i = 0; i < 2; ++i) start(1, [&] { compute(lane_); });
      return;
    case Kind::memory: start(1, [&] { read_cached(disk_, kCached, lane_, seed); }); return;
    case Kind::memory_self:
      // With a fast disk the victim would wait for the emulated processor, not for the disk.
      slow_->delay(2);
      return start(1, [&] { read_cached(slow_->path(), kCached, lane_, seed); });
    case Kind::link_out: run(1, stream(0, 1, false, between(5, 8))); return;
    case Kind::link_in:
      // iperf3 does not pace what it receives.
      FarEnd::limit(network_number(seed_, 1), false, between(5, 8) * 1'000'000 / 8);
      return run(1, stream(0, 1, true, 0));
    case Kind::link_calm:
      run(1, stream(0, 1, false, 5));
      run(2, stream(1, 2, false, 3));
      return;
    case Kind::disk_slow:
      start(1, [&] { read_paced(slow_->path(), kDiskRate * 0.2, lane_, seed); });
      return;
    case Kind::disk_calm: run(2, fio(disk_, "randread", 1, "64k")); break;
    default: break;
  }
  // For disks: half of the victims read as fast as they can, and half at a limited rate.
  const bool must_pace = facts_.kind == Kind::disk_self || facts_.kind == Kind::disk_calm;
  // Beside one who keeps the disk busy, who asks for more than a tenth of it would wait for a fifth
  // of the time, and so be held up.
  const bool little = facts_.kind == Kind::disk_calm;
  const double rate = kDiskRate * (little ? between(4, 7) : between(15, 35)) / 100;
  if (random_() % 2 == 0 || must_pace)
    start(1, [&] { read_paced(disk_, rate, lane_, seed); });
  else
    start(1, [&] { read_disk(disk_, kSmall, lane_, seed); });
}

void Scenario::start_flood() {
  const std::string cores = random_() % 2 == 0 ? "--cpu" : "--matrix";
  switch (facts_.kind) {
    case Kind::disk_large: return run(2, fio(disk_, "randread", between(4, 8), "1m"));
    case Kind::disk_small: return run(2, fio(disk_, "randread", between(12, 20), "16k"));
    case Kind::disk_write: return run(2, fio(disk_, "randwrite", between(4, 8), "512k"));
    case Kind::disk_two:
      run(2, fio(disk_, "randread", between(5, 7), "1m"));
      return run(3, fio(disk_, "randread", between(5, 7), "1m"));
    case Kind::disk_machine: return run(0, fio(disk_, "randread", between(5, 8), "1m"));
    case Kind::disk_self: return run(1, fio(disk_, "randread", between(4, 8), "1m"));
    case Kind::disk_slow: return slow_->delay(between(150, 400));
    case Kind::link_out: return run(2, stream(1, between(14, 20), false, 0));
    case Kind::link_in: return run(2, stream(1, between(14, 20), true, 0));
    case Kind::cores:
      return run(2, {"stress-ng", cores, std::to_string(between(4, 8)), "-t", "600", "--quiet"});
    case Kind::cores_self:
      return run(1, {"stress-ng", cores, std::to_string(between(4, 8)), "-t", "600", "--quiet"});
    case Kind::memory:
      return run(2, {"stress-ng", "--vm", "1", "--vm-bytes", fmt::format("{}M", between(190, 198)),
                     "--vm-keep", "--vm-method", "write64", "-t", "600", "--quiet"});
    case Kind::memory_self:
      return run(1, {"stress-ng", "--vm", "1", "--vm-bytes", "26M", "--vm-keep", "--vm-method",
                     "write64", "-t", "600", "--quiet"});
    case Kind::quiet: return run(2, little_work(5));
    case Kind::disk_calm:
    case Kind::link_calm: return;
  }
}

// For links the bytes of the victim's card; for others what its processes count.
std::uint64_t Scenario::work() const {
  if (facts_.place != Place::link) return shared->done[lane_];
  const bool sends = facts_.kind != Kind::link_in;
  const auto text = runtime::read_file(jobs_[0].network_sys + "/class/net/eth0/statistics/" +
                                       (sends ? "tx_bytes" : "rx_bytes"));
  return text ? std::stoull(*text) : 0;
}

double Scenario::percent_since(std::uint64_t before, int seconds) const {
  if (alone_ <= 0 || seconds <= 0) return 0;
  return 100 * static_cast<double>(work() - before) / seconds / alone_;
}

bool Scenario::tick(const proto::NodeSharing& said) {
  ++second_;
  if (second_ == kWarm) mark_ = work();
  if (second_ == kFlood) {
    alone_ = static_cast<double>(work() - mark_) / (kFlood - kWarm);
    start_flood();
    mark_ = work();
  }
  if (second_ <= kFlood) return false;
  const int since = second_ - kFlood;
  const bool held = std::any_of(said.holds.begin(), said.holds.end(), [&](const auto& hold) {
    return !hold.undone && index_of(hold.key).has_value();
  });
  if (!named_) {
    const bool now = std::any_of(said.findings.begin(), said.findings.end(),
                                 [&](const auto& f) { return is_true(f); });
    if (now || (held && !flooded_))
      flooded_ = static_cast<int>(std::lround(percent_since(mark_, since)));
    if (now) named_ = since;
    if (now || since < kLook) return false;
    flooded_ = static_cast<int>(std::lround(percent_since(mark_, since)));
    return true;
  }
  if (!held || facts_.cause != proto::SharingCause::neighbours) return since >= *named_ + kSettle;
  if (!held_) held_ = since;
  if (since == *held_ + kSettle) mark_ = work();
  if (since < *held_ + kSettle + kBack) return false;
  back_ = static_cast<int>(std::lround(percent_since(mark_, kBack)));
  return true;
}

// A finding is the truth if its victim and its cause are those of the scenario. The steady job may
// be held up by the same flood: the same truth about another victim.
bool Scenario::is_true(const proto::SharingFinding& f) const {
  if (!f.victim || !facts_.cause || f.cause != *facts_.cause) return false;
  const auto victim = index_of(*f.victim);
  const bool named = std::find(facts_.by.begin(), facts_.by.end(), 3) != facts_.by.end();
  if (victim != 1 && (victim != 3 || facts_.by.empty() || named)) return false;
  if (f.by.size() != facts_.by.size()) return false;
  return std::all_of(f.by.begin(), f.by.end(), [&](const proto::SharingJob& one) {
    const auto job = index_of(one.key);
    return job && std::find(facts_.by.begin(), facts_.by.end(), *job) != facts_.by.end();
  });
}

// Says how much of the last ten seconds the victim has waited for cores, memory and disks, in
// percent, as the kernel counts it.
std::string Scenario::pressure() const {
  std::string out = "; waits";
  for (const char* what : {"cpu", "memory", "io"}) {
    const auto text = runtime::read_file(
        fmt::format("{}/{}/{}.pressure", m_.jobs.layout.mounts[0].path, jobs_[0].cgroup, what));
    const std::size_t at = text ? text->find("avg10=") : std::string::npos;
    if (at != std::string::npos)
      out += fmt::format(" {} {}", what, text->substr(at + 6, text->find(' ', at) - at - 6));
  }
  return out;
}

Seen Scenario::outcome(const proto::NodeSharing& said) const {
  Seen out;
  out.seed = seed_;
  out.kind = facts_.name;
  out.has_truth = facts_.cause.has_value();
  out.named = named_;
  out.flooded = flooded_;
  out.back = back_;
  if (out.has_truth && !named_) out.text = pressure();
  for (const proto::SharingFinding& f : said.findings) {
    const auto victim = f.victim ? index_of(*f.victim) : std::nullopt;
    // A flood that only slows down itself harms no other job.
    if (!victim || std::find(facts_.by.begin(), facts_.by.end(), *victim) != facts_.by.end())
      continue;
    if (is_true(f)) {
      ++out.right;
      continue;
    }
    ++out.wrong;
    out.text += fmt::format("; of job {} on {} {}: {}", *victim, enum_name(f.resource), f.device,
                            enum_name(f.cause));
    for (const proto::SharingJob& one : f.by)
      out.text +=
          fmt::format(" {} ({} %, rise {} %)", index_of(one.key).value_or(9), one.share, one.rise);
    out.text += fmt::format(", machine {} %, level {}, held up {}, own {}, sure {}", f.machine,
                            f.level, f.held_up, f.own, f.confidence);
  }
  return out;
}

}  // namespace gantry::vm

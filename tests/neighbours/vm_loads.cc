#include "tests/neighbours/vm_loads.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/timerfd.h>

#include <algorithm>

namespace gantry::vm {
namespace {

constexpr const char* kFar = "far";
constexpr unsigned kFirstPort = 5201;

// Fires this many nanoseconds after the last time; missed times count as one.
class Pace {
 public:
  explicit Pace(long nanoseconds) : timer_(::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC)) {
    const timespec every{nanoseconds / 1'000'000'000, nanoseconds % 1'000'000'000};
    const itimerspec when{every, every};
    if (!timer_ || ::timerfd_settime(timer_.get(), 0, &when, nullptr) != 0) ::_exit(1);
  }
  void wait() const {
    std::uint64_t fired = 0;
    if (::read(timer_.get(), &fired, sizeof(fired)) != sizeof(fired)) ::_exit(1);
  }

 private:
  Fd timer_;
};

std::string network(unsigned number) {
  return fmt::format("g{}", number);
}
std::string sysfs(unsigned number) {
  return fmt::format("/run/g{}-sys", number);
}

// Cards with a device behind them, in the order of their names.
std::vector<std::string> cards() {
  std::vector<std::string> out;
  for (const std::string& name : runtime::list_dir("/sys/class/net"))
    if (::access(fmt::format("/sys/class/net/{}/device", name).c_str(), F_OK) == 0)
      out.push_back(name);
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

void become(const Words& words) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDWR);
  if (nothing < 0 || ::dup2(nothing, 0) < 0 || ::dup2(nothing, 1) < 0) ::_exit(126);
  ::execvp(argv[0], argv.data());
  ::_exit(127);
}

bool done(const std::string& command) {
  return std::system((command + " >/dev/null 2>&1").c_str()) == 0;
}

Words fio(const std::string& disk, const std::string& how, unsigned threads,
          const std::string& bytes) {
  return {"fio",          "--name=f",         "--filename=" + disk,
          "--rw=" + how,  "--bs=" + bytes,    fmt::format("--numjobs={}", threads),
          "--direct=1",   "--ioengine=psync", "--thread",
          "--time_based", "--runtime=600",    "--output=/dev/null",
          "--size=90%",   "--randrepeat=0"};
}

Words little_work(unsigned percent) {
  return {"stress-ng", "--cpu", "1",      "--cpu-load", std::to_string(percent),
          "--timeout", "600",   "--quiet"};
}

Words stream(unsigned server, unsigned streams, bool back, unsigned megabits) {
  Words out{"iperf3",
            "-c",
            "10.77.0.2",
            "-p",
            std::to_string(kFirstPort + server),
            "-t",
            "600",
            "-P",
            std::to_string(streams)};
  if (back) out.push_back("-R");
  // Paced by the kernel: with -b iperf3 would wait for its turn by asking again and again.
  if (megabits > 0) out.insert(out.end(), {"--fq-rate", fmt::format("{}M", megabits)});
  return out;
}

void read_paced(const std::string& disk, double bytes_per_second, std::size_t counter,
                unsigned seed) {
  const Fd file(::open(disk.c_str(), O_RDONLY | O_DIRECT | O_CLOEXEC));
  void* buffer = nullptr;
  if (!file || ::posix_memalign(&buffer, 4096, kSmall) != 0) ::_exit(1);
  const auto places = static_cast<std::uint64_t>(::lseek(file.get(), 0, SEEK_END)) / kSmall;
  const Pace pace(static_cast<long>(1e9 * static_cast<double>(kSmall) / bytes_per_second));
  std::mt19937_64 random(seed);
  for (;;) {
    const auto at = static_cast<off_t>(random() % places * kSmall);
    if (::pread(file.get(), buffer, kSmall, at) != static_cast<ssize_t>(kSmall)) ::_exit(1);
    shared->done[counter] += kSmall;
    pace.wait();
  }
}

void read_cached(const std::string& disk, std::size_t bytes, std::size_t counter, unsigned seed) {
  const Fd file(::open(disk.c_str(), O_RDONLY | O_CLOEXEC));
  std::vector<char> buffer(kSmall);
  if (!file) ::_exit(1);
  for (std::size_t at = 0; at < bytes; at += kSmall)
    if (::pread(file.get(), buffer.data(), kSmall, static_cast<off_t>(at)) <= 0) ::_exit(1);
  const Pace pace(5'000'000);
  std::mt19937_64 random(seed);
  for (;;) {
    const auto at = static_cast<off_t>(random() % (bytes / 4096) * 4096);
    if (::pread(file.get(), buffer.data(), 4096, at) <= 0) ::_exit(1);
    shared->done[counter] += 4096;
    if (shared->done[counter] % (64 * 4096) == 0) pace.wait();
  }
}

std::optional<std::string> FarEnd::make(unsigned megabits) {
  for (const char* module : {"virtio_net", "veth", "sch_tbf"})
    done(fmt::format("modprobe {}", module));
  const auto two = cards();
  if (two.size() != 2) return fmt::format("the machine has {} cards, not 2", two.size());
  // The far end limits the returned traffic to the near card's speed; a bucket sends a little less
  // than configured.
  const std::string rate =
      fmt::format("root tbf rate {}kbit burst 64kb latency 60ms", megabits * 1000);
  for (const std::string& command :
       {fmt::format("ip netns add {}", kFar), fmt::format("ip link set {} netns {}", two[1], kFar),
        fmt::format("ip addr add 10.77.0.1/24 dev {0} && ip link set {0} up", two[0]),
        fmt::format("ip -n {} addr add 10.77.0.2/24 dev {}", kFar, two[1]),
        fmt::format("ip -n {0} link set {1} up && ip -n {0} link set lo up", kFar, two[1]),
        fmt::format("ip -n {} route add 10.78.0.0/16 via 10.77.0.1", kFar),
        std::string("echo 1 > /proc/sys/net/ipv4/ip_forward"),
        fmt::format("tc qdisc add dev {} {}", two[0], rate),
        fmt::format("ip netns exec {} tc qdisc add dev {} {}", kFar, two[1], rate)})
    if (std::system(command.c_str()) != 0) return command;
  for (unsigned i = 0; i < kServers; ++i)
    if (!done(fmt::format("ip netns exec {} iperf3 -s -D -p {}", kFar, kFirstPort + i)))
      return std::string("iperf3 -s");
  return std::nullopt;
}

std::string FarEnd::add(unsigned number) {
  const std::string name = network(number), host = fmt::format("h{}", number);
  done(
      fmt::format("ip netns add {0} && ip link add {1} type veth peer name eth0 netns {0} && "
                  "ip addr add 10.78.{2}.1/24 dev {1} && ip link set {1} up && "
                  "ip -n {0} addr add 10.78.{2}.2/24 dev eth0 && ip -n {0} link set eth0 up && "
                  "ip -n {0} route add default via 10.78.{2}.1",
                  name, host, number));
  ::mkdir(sysfs(number).c_str(), 0755);
  const pid_t pid = ::fork();  // a sysfs shows the network of the process that mounts it
  if (pid == 0) {
    enter(number);
    ::_exit(::mount("sysfs", sysfs(number).c_str(), "sysfs", MS_RDONLY, nullptr) == 0 ? 0 : 1);
  }
  ::waitpid(pid, nullptr, 0);
  return sysfs(number);
}

void FarEnd::remove(unsigned number) {
  ::umount2(sysfs(number).c_str(), MNT_DETACH);
  ::rmdir(sysfs(number).c_str());
  done(fmt::format("ip netns del {}", network(number)));
}

void FarEnd::enter(unsigned number) {
  const Fd name(::open(("/run/netns/" + network(number)).c_str(), O_RDONLY | O_CLOEXEC));
  if (!name || ::setns(name.get(), CLONE_NEWNET) != 0) ::_exit(125);
}

void FarEnd::limit(unsigned number, bool sends, std::uint64_t most) {
  const std::string where =
      sends ? fmt::format("ip netns exec {} tc qdisc {{}} dev eth0", network(number))
            : fmt::format("tc qdisc {{}} dev h{}", number);
  if (most == 0)
    done(fmt::format(fmt::runtime(where), "del") + " root");
  else
    done(fmt::format(fmt::runtime(where), "replace") +
         fmt::format(" root tbf rate {}bit burst 32kb latency 50ms", most * 8));
}

SlowDisk::SlowDisk(std::string disk, unsigned number)
    : disk_(std::move(disk)), name_(fmt::format("slow{}", number)) {
  done("modprobe dm-delay");
  const Fd file(::open(disk_.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return;
  sectors_ = static_cast<std::uint64_t>(::lseek(file.get(), 0, SEEK_END)) / 512;
  if (done(fmt::format("dmsetup create {} --noudevsync --table '{}'", name_, table(0))))
    path_ = fmt::format("/dev/dm-{}", number);
}

std::string SlowDisk::table(unsigned milliseconds) const {
  return fmt::format("0 {} delay {} 0 {}", sectors_, disk_, milliseconds);
}

void SlowDisk::delay(unsigned milliseconds) {
  done(
      fmt::format("dmsetup suspend {0} && dmsetup reload {0} --table '{1}' && dmsetup resume "
                  "--noudevsync {0}",
                  name_, table(milliseconds)));
}

}  // namespace gantry::vm

#include "bench/containers/bare_loop.h"

#include <fcntl.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>
#include <sched.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>

#include "noded/machine/files.h"

namespace gantry::bench {
namespace {

// The limits go into config.json, so crun itself sets them, as it would without Gantry.
std::string bare_config(const std::string& text, const std::string& cgroup, int memory_mib) {
  rapidjson::Document d;
  d.Parse(text.data(), text.size());
  if (d.HasParseError()) return {};
  auto& a = d.GetAllocator();
  rapidjson::Value args(rapidjson::kArrayType);
  args.PushBack("/bin/true", a);
  d["process"]["args"] = args;
  auto& linux_part = d["linux"];
  // The shim's own user namespace is gone when its container runs: crun makes one for each.
  for (auto& one : linux_part["namespaces"].GetArray())
    if (one["type"] == "user") one.RemoveMember("path");
  linux_part.AddMember("cgroupsPath", rapidjson::Value(cgroup.c_str(), a), a);
  rapidjson::Value memory(rapidjson::kObjectType), pids(rapidjson::kObjectType),
      resources(rapidjson::kObjectType);
  memory.AddMember("limit", std::int64_t{memory_mib} << 20, a);
  pids.AddMember("limit", 128, a);
  resources.AddMember("memory", memory, a);
  resources.AddMember("pids", pids, a);
  linux_part.AddMember("resources", resources, a);
  rapidjson::StringBuffer out;
  rapidjson::Writer<rapidjson::StringBuffer> writer(out);
  d.Accept(writer);
  return {out.GetString(), out.GetSize()};
}

int run_once(const std::string& bundle, const std::string& id) {
  std::string words[] = {"/usr/bin/crun", "--root", bundle + "/state", "run", "--bundle",
                         bundle,          id};
  char* argv[8];
  for (int i = 0; i < 7; ++i) argv[i] = words[i].data();
  argv[7] = nullptr;
  char path[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin";
  char* env[] = {path, nullptr};
  pid_t pid = 0;
  if (::posix_spawn(&pid, argv[0], nullptr, nullptr, argv, env) != 0) return 1;
  int status = 1;
  ::waitpid(pid, &status, 0);
  return status;
}

// Runs in a child of the bench: it enters the mounts, runs the containers, and writes its CPU time
// in ms to `out`.
[[noreturn]] void worker(int mounts, const std::string& mount_dir, int number, int each,
                         int memory_mib, int out) {
  // crun gives its standard files to the user of the container. They are a pipe here, so that the
  // host's /dev/null keeps its owner.
  int ends[2];
  if (::pipe(ends) != 0) ::_exit(1);
  ::dup2(ends[0], 0);
  ::dup2(ends[1], 1);
  if (::setns(mounts, CLONE_NEWNS) != 0) ::_exit(1);
  const auto text = runtime::read_file(mount_dir + "/bundle/config.json");
  const std::string tag = std::to_string(::getpid()) + "-" + std::to_string(number);
  const std::string bundle = mount_dir + "/bare-" + tag;
  if (!text || ::mkdir(bundle.c_str(), 0711) != 0) ::_exit(1);
  const Fd dir(::open(bundle.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  const auto config = bare_config(*text, "/gantry-bare-" + tag, memory_mib);
  if (config.empty() || !runtime::write_small(dir.get(), "config.json", config)) ::_exit(1);
  for (int i = 0; i < each; ++i)
    if (run_once(bundle, "c" + std::to_string(i)) != 0) ::_exit(1);
  rusage used{};
  ::getrusage(RUSAGE_CHILDREN, &used);
  const double ms = (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * 1e3 +
                    (used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e3;
  (void)!::write(out, &ms, sizeof ms);
  runtime::remove_tree(bundle);
  ::_exit(0);
}

}  // namespace

Result<BareFigures> bare_loop(int shim_pid, const std::string& mount_dir, int parallel, int each,
                              int memory_mib) {
  const std::string path = "/proc/" + std::to_string(shim_pid) + "/ns/mnt";
  const Fd mounts(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!mounts) return runtime::fail_errno(ErrorCode::io_error, path);
  int ends[2];
  if (::pipe(ends) != 0) return runtime::fail_errno(ErrorCode::internal, "pipe");
  const Fd reader(ends[0]), writer(ends[1]);
  const auto start = std::chrono::steady_clock::now();
  std::vector<pid_t> workers;
  for (int i = 0; i < parallel; ++i) {
    workers.push_back(::fork());
    if (workers.back() == 0) worker(mounts.get(), mount_dir, i, each, memory_mib, writer.get());
  }
  bool good = true;
  for (const pid_t pid : workers) {
    int status = 1;
    good = pid > 0 && ::waitpid(pid, &status, 0) == pid && status == 0 && good;
  }
  if (!good) return fail(ErrorCode::runtime_failed, "a bare `crun run` failed");
  BareFigures figures;
  figures.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (int i = 0; i < parallel; ++i) {
    double ms = 0;
    if (::read(reader.get(), &ms, sizeof ms) == sizeof ms) figures.cpu_ms += ms / (parallel * each);
  }
  return figures;
}

}  // namespace gantry::bench

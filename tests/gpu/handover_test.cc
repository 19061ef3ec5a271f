// Tests how devices go from one job to the next: noded/gpu/node/gpu_handover.h through
// noded/gpu/node/gpus.h, with stand-ins for libnvidia-ml and libcuda.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "tests/gpu/node_gpus.h"

namespace gantry::node {
namespace {

class HandoverNode : public GpuNode {
 public:
  explicit HandoverNode(const std::string& gpus) : GpuNode(gpus) {
    std::filesystem::copy(
        std::filesystem::path(gpu::FakeNode::library()).parent_path() / "libcuda.so.1",
        fake.dir() + "/libcuda.so.1");
    config.cuda_library = fake.dir() + "/libcuda.so.1";
  }

  void begin() {
    start();
    watch();
  }
  // Prepares a job and returns its request as it would be started. If it may not start, the result
  // is nullptr and `why` says why.
  const runtime::LaunchRequest* give(const AttemptKey& key, std::vector<GpuGrant> grants) {
    prepared.erase(key);
    prepare(key, std::move(grants));
    REQUIRE(until([&] { return prepared.contains(key); }));
    why = prepared.at(key) ? "" : prepared.at(key).error().message;
    return prepared.at(key) ? &*prepared.at(key) : nullptr;
  }
  std::vector<GpuUsage> end(const AttemptKey& key) {
    std::optional<std::vector<GpuUsage>> out;
    gpus->finish(key, [&](std::vector<GpuUsage>&& usage) { out = std::move(usage); });
    REQUIRE(until([&] { return out.has_value(); }));
    gpus->released(key);
    return *out;
  }
  // Runs a job of tenant `of` from start to end; returns whether its first device was overwritten
  // before.
  GpuScrub pass(const std::string& of, std::vector<GpuGrant> grants) {
    tenant = of;
    const auto* request = give(kJob, std::move(grants));
    INFO(why);
    REQUIRE(request != nullptr);
    REQUIRE_FALSE(request->gpus.empty());
    const GpuScrub out = request->gpus.front().scrub;
    end(kJob);
    return out;
  }
  // Returns the stand-in's record of what was overwritten; each line has the device and the MiB.
  std::vector<std::string> overwritten() const {
    std::vector<std::string> out;
    std::ifstream file(fake.dir() + "/scrubbed.txt");
    for (std::string line; std::getline(file, line);) out.push_back(line);
    return out;
  }
  void cuda(const std::string& text) const { std::ofstream(fake.dir() + "/cuda.txt") << text; }
  void program(const std::string& text) {
    config.gpu_probe = fake.dir() + "/probe";
    std::ofstream(config.gpu_probe) << "#!/bin/sh\n" << text << "\n";
    ::chmod(config.gpu_probe.c_str(), 0755);
  }

  std::string why;
};

TEST_CASE("memory is overwritten between jobs of two tenants, and not between jobs of one") {
  HandoverNode n(R"([{"model": "h100", "count": 2}])");
  n.begin();
  const std::string uuid = n.gpus->inventory().gpus[0].uuid;
  // No one knows which tenant used the memory before, so it is overwritten.
  CHECK(n.pass("physics", {whole(0)}) == GpuScrub::done);
  CHECK(n.pass("physics", {whole(0)}) == GpuScrub::not_needed);
  CHECK(n.pass("biology", {whole(0)}) == GpuScrub::done);
  REQUIRE(n.overwritten().size() == 2);
  CHECK(n.overwritten()[1] == uuid + " 81420");
  n.stop();  // what is known of the memory is kept while no daemon runs
  n.begin();
  CHECK(n.pass("biology", {whole(0)}) == GpuScrub::not_needed);
  CHECK(n.pass("physics", {whole(0)}) == GpuScrub::done);
  n.tenant = "physics";
  const auto* both = n.give(kJob, {whole(0), whole(1)});
  REQUIRE(both != nullptr);
  REQUIRE(both->gpus.size() == 2);
  CHECK(both->gpus[0].scrub == GpuScrub::not_needed);
  CHECK(both->gpus[1].scrub == GpuScrub::done);
  CHECK(both->gpus[1].note == "81420 of 81920 MiB");
}

TEST_CASE("a slice's memory is known by its place on the GPU, not by its UUID") {
  HandoverNode n(R"([{"model": "h100", "count": 1, "mig": true}])");
  n.begin();
  CHECK(n.pass("physics", {slice(0, 19, 0, 133)}) == GpuScrub::done);
  CHECK(n.pass("physics", {slice(0, 19, 0, 133)}) == GpuScrub::not_needed);
  CHECK(n.pass("biology", {slice(0, 19, 1, 133)}) == GpuScrub::done);
  CHECK(n.pass("physics", {slice(0, 19, 0, 133)}) == GpuScrub::not_needed);
  // The second place of this slice had another tenant's memory.
  CHECK(n.pass("physics", {slice(0, 14, 0, 266)}) == GpuScrub::done);
  const auto done = n.overwritten();
  REQUIRE(done.size() == 3);
  for (const std::string& line : done) CHECK(line.starts_with("MIG-"));
}

TEST_CASE("a node that cannot overwrite memory reports it, or closes the GPU if that is required") {
  HandoverNode n(R"([{"model": "h100", "count": 1}])");
  n.config.cuda_library = n.fake.dir() + "/none.so";
  n.begin();
  const auto* request = n.give(kJob, {whole(0)});
  REQUIRE(request != nullptr);
  CHECK(request->gpus.front().scrub == GpuScrub::not_possible);
  CHECK(request->gpus.front().note.find("none.so: cannot open") != std::string::npos);
  const auto usage = n.end(kJob);
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].scrub == GpuScrub::not_possible);
  n.stop();
  n.config.gpu_scrub = GpuScrubbing::required;
  n.tenant = "biology";
  n.begin();
  CHECK(n.give(kJob, {whole(0)}) == nullptr);
  CHECK(n.why.starts_with("gpu-scrub: "));
  CHECK(n.has(0, "gpu-scrub: "));
  n.stop();
  n.config.gpu_scrub = GpuScrubbing::off;
  n.begin();
  REQUIRE(n.until([&] { return n.gpus->inventory().gpus[0].faults.empty(); }));
  CHECK(n.pass("biology", {whole(0)}) == GpuScrub::off);
}

TEST_CASE("memory that cannot be overwritten closes the GPU until it can") {
  HandoverNode n(R"([{"model": "h100", "count": 1}])");
  n.cuda("keeps");
  n.begin();
  CHECK(n.give(kJob, {whole(0)}) == nullptr);
  CHECK(n.why == "gpu-scrub: what was overwritten is still there");
  CHECK(n.has(0, "gpu-scrub: "));
  n.cuda("fail cuMemsetD8_v2 719");
  n.program("exit 0");
  REQUIRE(n.until([&] { return n.overwritten().size() > 2; }));  // the scrub was tried again
  CHECK(n.has(0, "gpu-scrub: "));
  n.cuda("");
  REQUIRE(n.until([&] { return n.gpus->inventory().gpus[0].faults.empty(); }));
  // No job has used the memory since it was overwritten.
  CHECK(n.pass("physics", {whole(0)}) == GpuScrub::not_needed);
}

TEST_CASE("a GPU on which a process is left is given to no job until the process ends") {
  HandoverNode n(R"([{"model": "h100", "count": 2}])");
  n.begin();
  REQUIRE(n.give(kJob, {whole(0)}) != nullptr);
  n.fake.control("process 0 4711 300");
  n.told.clear();
  n.end(kJob);
  REQUIRE(n.until([&] { return n.has(0, "gpu-not-idle: process 4711 is left on it"); }));
  n.fake.control("process 1 4712 300");
  CHECK(n.give(kOther, {whole(1)}) == nullptr);
  CHECK(n.why == "gpu-not-idle: process 4712 is left on it");
  CHECK(n.has(1, "gpu-not-idle: "));  // reported before the failed start
  n.fake.control("end 0 4711");
  REQUIRE(n.until([&] { return n.gpus->inventory().gpus[0].faults.empty(); }));
  CHECK(n.has(1, "gpu-not-idle: "));
  n.fake.control("end 1 4712");
  n.fake.control("set 1 memory=5000");
  CHECK(n.has(1, "gpu-not-idle: "));
  n.fake.control("set 1 memory=0");
  REQUIRE(n.until([&] { return n.gpus->inventory().gpus[1].faults.empty(); }));
}

TEST_CASE("if a process is left on a slice, only the slice is out of service") {
  HandoverNode n(R"([{"model": "h100", "count": 1, "mig": true}])");
  n.begin();
  REQUIRE(n.give(kJob, {slice(0, 19, 0, 133)}) != nullptr);
  const auto instance = n.gpus->inventory().gpus[0].slices.at(0).gpu_instance;
  n.fake.control("process 0/" + std::to_string(instance) + " 4711 300");
  n.end(kJob);
  REQUIRE(n.until([&] { return n.has(0, "gpu-not-idle: ", FaultDomain::slice); }));
  CHECK(n.gpus->inventory().gpus[0].faults.at(0).gpu_instance == instance);
  n.fake.control("end 0/" + std::to_string(instance) + " 4711");
  REQUIRE(n.until([&] { return n.gpus->inventory().gpus[0].faults.empty(); }));
}

TEST_CASE("the site's program closes a GPU or the node, and its words are the reason") {
  HandoverNode n(R"([{"model": "h100", "count": 2}])");
  const std::string dir = n.fake.dir();
  n.program("echo \"$GANTRY_PROBE $GANTRY_GPU $GANTRY_GPU_UUID ${GANTRY_JOB_ID:-none}\" >> " + dir +
            "/asked\necho looking\ncat " + dir + "/words 2> /dev/null\nexit $(cat " + dir +
            "/status)");
  const auto say = [&](int status, const std::string& words) {
    std::ofstream(dir + "/words") << words << "\n";
    std::ofstream(dir + "/status") << status << "\n";
  };
  say(0, "");
  n.begin();
  REQUIRE(n.give(kJob, {whole(1)}) != nullptr);
  say(1, "the fabric is slow");
  n.end(kJob);
  REQUIRE(n.until([&] { return n.has(1, "gpu-probe: the fabric is slow"); }));
  const std::string uuid = n.gpus->inventory().gpus[1].uuid;
  std::ifstream asked(dir + "/asked");
  std::string before, after;
  std::getline(asked, before);
  std::getline(asked, after);
  CHECK(before == "before 1 " + uuid + " 7");
  CHECK(after == "after 1 " + uuid + " 7");
  say(2, "no route to the file server");
  CHECK(n.give(kOther, {whole(0)}) == nullptr);
  CHECK(n.has(0, "gpu-probe: no route to the file server", FaultDomain::node));
  say(0, "");
  REQUIRE(n.until([&] {
    return n.gpus->inventory().gpus[0].faults.empty() && n.gpus->inventory().gpus[1].faults.empty();
  }));
  CHECK(n.give(kOther, {whole(0)}) != nullptr);
}

TEST_CASE("a job's use of its devices is reported while it runs and when it has ended") {
  HandoverNode n(R"([{"model": "h100", "count": 1}])");
  n.begin();
  REQUIRE(n.give(kJob, {whole(0)}) != nullptr);
  n.fake.control("set 0 utilization=60 memory=1024 power=400");
  REQUIRE(
      n.until([&] { return !n.gpus->activity().empty() && n.gpus->activity()[0].busy == 60u; }));
  const proto::GpuActivity now = n.gpus->activity()[0];
  CHECK(now.key == kJob);
  CHECK(now.memory_mib >= 1024);
  CHECK(now.of_memory_mib > 70'000);
  CHECK(now.power_w == 400u);
  n.fake.control("set 0 utilization=0 memory=0");
  const auto usage = n.end(kJob);
  REQUIRE(usage.size() == 1);
  CHECK(usage[0].node == "n1");
  CHECK(usage[0].samples > 0);
  CHECK(usage[0].busy_permille > 0);
  CHECK(usage[0].memory_peak_mib >= 1024);
  CHECK(usage[0].scrub == GpuScrub::done);
  REQUIRE(n.until([&] { return n.gpus->activity().empty(); }));
}

TEST_CASE("a job with an image gets the driver by CDI, without its device files") {
  HandoverNode n(R"([{"model": "h100", "count": 1}])");
  const std::string dir = n.fake.dir() + "/cdi";
  std::filesystem::create_directory(dir);
  ::chmod(dir.c_str(), 0755);
  std::ofstream(dir + "/nvidia.json") << R"({"cdiVersion": "0.6.0", "kind": "nvidia.com/gpu",
    "devices": [{"name": "all", "containerEdits": {"deviceNodes": [{"path": "/dev/nvidia7"}]}}],
    "containerEdits": {"env": ["DRIVER=550", "NVIDIA_VISIBLE_DEVICES=void"],
      "mounts": [{"hostPath": "/usr/lib/libcuda.so.550", "containerPath": "/usr/lib/libcuda.so.550",
                  "options": ["ro", "nosuid", "nodev", "bind"]},
                 {"hostPath": "/tmp/nvidia-mps", "containerPath": "/tmp/nvidia-mps"}],
      "hooks": [{"hookName": "createContainer", "path": "/usr/bin/nvidia-ctk",
                 "args": ["nvidia-ctk", "hook", "update-ldcache"]}]}})";
  ::chmod((dir + "/nvidia.json").c_str(), 0644);
  n.config.cdi_dirs = {dir};
  n.begin();
  const auto* bare = n.give(kJob, {whole(0)});
  REQUIRE(bare != nullptr);
  CHECK(bare->mounts.empty());  // the node's own directories have all files
  n.end(kJob);
  n.image = "/srv/image";
  const auto* request = n.give(kOther, {whole(0)});
  REQUIRE(request != nullptr);
  REQUIRE(request->mounts.size() == 1);
  CHECK(request->mounts[0].path == "/usr/lib/libcuda.so.550");
  REQUIRE(request->hooks.size() == 1);
  CHECK(request->hooks[0].stage == "createContainer");
  CHECK(request->env.at("DRIVER") == "550");
  CHECK(request->env.at("NVIDIA_VISIBLE_DEVICES").starts_with("GPU-"));
  for (const auto& device : request->devices) CHECK(device.path != "/dev/nvidia7");
}

TEST_CASE("without CDI a job with an image gets the driver's libraries as they are found") {
  HandoverNode n(R"([{"model": "h100", "count": 1}])");
  const std::string dir = n.fake.dir();
  std::filesystem::rename(dir + "/libcuda.so.1", dir + "/libcuda.so.550.54.15");
  std::filesystem::create_symlink("libcuda.so.550.54.15", dir + "/libcuda.so.1");
  std::ofstream(dir + "/libcuda.so.1.old") << "x";
  std::ofstream(dir + "/libcudart.so.12") << "x";
  std::filesystem::create_symlink("nowhere", dir + "/libnvidia-cfg.so.1");
  std::filesystem::copy(n.config.gpu_library, dir + "/libnvidia-ml.so.1");
  n.config.gpu_library = dir + "/libnvidia-ml.so.1";
  n.begin();
  const auto* bare = n.give(kJob, {whole(0)});
  REQUIRE(bare != nullptr);
  CHECK(bare->mounts.empty());  // the node's own directories have all files
  n.end(kJob);
  n.image = "/srv/image";
  const auto* request = n.give(kOther, {whole(0)});
  REQUIRE(request != nullptr);
  std::map<std::string, std::string> found;
  for (const runtime::LaunchMount& m : request->mounts)
    if (m.path.starts_with("/usr/local/nvidia/lib64/")) found[m.path.substr(24)] = m.source;
  const std::string real = std::filesystem::canonical(dir);
  CHECK(found ==
        std::map<std::string, std::string>{{"libcuda.so.1", real + "/libcuda.so.550.54.15"},
                                           {"libcuda.so.550.54.15", real + "/libcuda.so.550.54.15"},
                                           {"libnvidia-ml.so.1", real + "/libnvidia-ml.so.1"}});
}

}  // namespace
}  // namespace gantry::node

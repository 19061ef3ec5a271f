// Tests CDI specifications as nvidia-ctk writes them, errors in others, and merging.
#include "noded/gpu/cdi.h"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <fstream>

#include "noded/machine/files.h"

namespace gantry::gpu {
namespace {

const char* const kNvidia = R"(---
cdiVersion: 0.5.0
kind: nvidia.com/gpu
devices:
- name: "0"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
- name: "0:1"
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
    - path: /dev/nvidia-caps/nvidia-cap12
      permissions: r
- name: all
  containerEdits:
    deviceNodes:
    - path: /dev/nvidia0
containerEdits:
  env:
  - NVIDIA_VISIBLE_DEVICES=void
  - DRIVER_ROOT=/
  deviceNodes:
  - path: /dev/nvidiactl
  - path: /dev/nvidia-uvm
    hostPath: /host/dev/nvidia-uvm
    type: c
    major: 508
    minor: 0
    fileMode: 438
  hooks:
  - hookName: createContainer
    path: /usr/bin/nvidia-cdi-hook
    args: [nvidia-cdi-hook, update-ldcache, --folder, /usr/lib64]
  mounts:
  - hostPath: /usr/lib64/libcuda.so.550.54.15
    containerPath: /usr/lib64/libcuda.so.550.54.15
    options: [ro, nosuid, nodev, bind]
  - hostPath: /usr
    containerPath: /usr
  - hostPath: /tmp/nvidia-mps
    containerPath: /tmp/nvidia-mps
  - hostPath: /run/nvidia-persistenced/socket
    containerPath: /run/nvidia-persistenced/socket
)";

struct Folder {
  Folder() {
    char name[] = "/tmp/gantry-cdi-XXXXXX";
    REQUIRE(::mkdtemp(name) != nullptr);
    path = name;
  }
  ~Folder() { runtime::remove_tree(path); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path + "/" + name) << text;
    REQUIRE(::chmod((path + "/" + name).c_str(), 0644) == 0);
  }
  std::string path;
};

std::string spec(const std::string& version, const std::string& edits,
                 const std::string& kind = "acme.com/fpga", const std::string& device = "a") {
  return R"({"cdiVersion": ")" + version + R"(", "kind": ")" + kind +
         R"(", "devices": [{"name": ")" + device + R"(", "containerEdits": )" + edits + "}]}";
}

std::string why_not(const std::string& json) {
  const auto parsed = parse_cdi(json, "x.json");
  return parsed ? "" : parsed.error().message;
}

TEST_CASE("a specification that nvidia-ctk generated is read") {
  const auto parsed = parse_cdi(kNvidia, "nvidia.yaml");
  INFO((parsed ? "" : parsed.error().message));
  REQUIRE(parsed);
  CHECK(parsed->kind == "nvidia.com/gpu");
  REQUIRE(parsed->devices.size() == 3);
  CHECK(parsed->devices[1].edits.nodes[1].permissions == "r");
  CHECK(parsed->devices[1].edits.nodes[0].permissions == "rwm");
  const CdiNode& uvm = parsed->edits.nodes[1];
  CHECK(uvm.host == "/host/dev/nvidia-uvm");
  CHECK(uvm.major == 508);
  CHECK(uvm.mode == 0666);
  CHECK(parsed->edits.hooks.at(0).args.size() == 4);
}

TEST_CASE("a specification in JSON is read like one in YAML") {
  const auto json = parse_cdi(
      R"({"cdiVersion": "1.1.0", "kind": "acme.com/fpga", "annotations": {"a": "b"},
          "containerEdits": {"additionalGids": [44, 0]},
          "devices": [{"name": "slot\u002d0", "containerEdits": {"env": ["A=1", "B=x=y"],
            "hooks": [{"hookName": "poststop", "path": "/sbin/clean", "timeout": 5}]}}]})",
      "x.json");
  INFO((json ? "" : json.error().message));
  REQUIRE(json);
  CHECK(json->devices[0].name == "slot-0");
  CHECK(json->devices[0].edits.env == std::vector<std::string>{"A=1", "B=x=y"});
  CHECK(json->devices[0].edits.hooks[0].timeout_s == 5);
  CHECK(json->edits.gids == std::vector<std::uint32_t>{44});
}

TEST_CASE("an error names the field that is refused") {
  const std::string env = R"({"env": ["A=1"]})";
  CHECK(why_not(spec("0.5.0", env)).empty());
  CHECK(why_not(spec("0.5.0", env, "acme.com")) ==
        "x.json: kind must be VENDOR/CLASS, not \"acme.com\"");
  CHECK(why_not(spec("9.9.9", env)) ==
        "x.json: cdiVersion \"9.9.9\" is not known; versions up to 1.1.0 are");
  CHECK(why_not(spec("0.3.0", env, "acme.com/fpga", "0")) ==
        "x.json: cdiVersion 0.3.0 is too old for devices[0].name");
  CHECK(why_not(spec("0.5.0", R"({"additionalGids": [1]})")) ==
        "x.json: cdiVersion 0.5.0 is too old for devices[0].containerEdits.additionalGids");
  CHECK(why_not(spec("0.5.0", env, "acme.com/fpga.big")) ==
        "x.json: cdiVersion 0.5.0 is too old for kind");
  CHECK(why_not(spec("1.1.0", R"({"intelRdt": {"closID": "x"}})")) ==
        "x.json: devices[0].containerEdits.intelRdt is not supported");
  CHECK(why_not(spec("1.1.0", R"({"gpus": 1})")) ==
        "x.json: devices[0].containerEdits.gpus is no field of containerEdits");
  CHECK(why_not(spec("1.1.0", R"({"env": ["A"]})")) ==
        "x.json: devices[0].containerEdits.env must be NAME=VALUE, not \"A\"");
  CHECK(why_not(spec("1.1.0", R"({"mounts": [{"hostPath": "/a", "containerPath": "/b/../c"}]})"))
            .find("must be an absolute path without") != std::string::npos);
  CHECK(why_not(spec("1.1.0", R"({"mounts": [{"containerPath": "/b"}]})"))
            .find("hostPath is missing") != std::string::npos);
  CHECK(why_not(spec("1.1.0", R"({"hooks": [{"hookName": "later", "path": "/x"}]})"))
            .find("\"later\" is no stage") != std::string::npos);
  CHECK(why_not(spec("1.1.0", R"({"deviceNodes": [{"path": "/dev/x", "permissions": "x"}]})"))
            .find("permissions must be") != std::string::npos);
  CHECK(why_not(spec("1.1.0", R"({"deviceNodes": [{"path": "/dev/x", "major": -1}]})"))
            .find("major must be a whole number") != std::string::npos);
  CHECK(why_not(spec("1.1.0", "{}")) == "x.json: devices[0] has no containerEdits");
  CHECK(why_not(spec("1.1.0", env, "acme.com/fpga", "a b")) ==
        "x.json: devices[0].name is no name of a device");
  CHECK(why_not(R"({"cdiVersion": "1.1.0", "kind": "a.b/c", "devices": []})") ==
        "x.json: devices is empty");
  CHECK_FALSE(why_not("{").empty());
  CHECK_FALSE(why_not("[]").empty());
  CHECK_FALSE(why_not("").empty());
}

TEST_CASE("the devices of a folder are merged, with the common edits once") {
  const Folder folder;
  folder.write("nvidia.yaml", kNvidia);
  folder.write("notes.txt", "not a specification");
  const CdiRegistry registry = read_cdi(std::vector<std::string>{folder.path, "/nowhere"});
  CHECK(registry.problems == std::vector<std::string>{});
  CHECK(registry.devices.size() == 3);
  const auto merged =
      merge_cdi(registry, std::vector<std::string>{"nvidia.com/gpu=0:1", "nvidia.com/gpu=0"});
  REQUIRE(merged);
  std::vector<std::string> nodes;
  for (const CdiNode& one : merged->nodes) nodes.push_back(one.path);
  CHECK(nodes == std::vector<std::string>{"/dev/nvidiactl", "/dev/nvidia-uvm",
                                          "/dev/nvidia-caps/nvidia-cap12", "/dev/nvidia0"});
  CHECK(merged->hooks.size() == 1);
  CHECK(merged->mounts.front().container == "/usr");  // it stands before the mounts inside of it
  CHECK(merge_cdi(registry, std::vector<std::string>{"nvidia.com/gpu=7"}).error().message ==
        "no CDI device nvidia.com/gpu=7: there are 0, 0:1, all");
  CHECK(merge_cdi(registry, std::vector<std::string>{"amd.com/gpu=7"}).error().message ==
        "no CDI device amd.com/gpu=7: there is no specification of this kind");
}

TEST_CASE("edits that would let tenants meet or choose devices are left out") {
  const Folder folder;
  folder.write("nvidia.yaml", kNvidia);
  const CdiRegistry registry = read_cdi(std::vector<std::string>{folder.path});
  const auto merged = merge_cdi(registry, std::vector<std::string>{"nvidia.com/gpu=0"});
  REQUIRE(merged);
  CHECK(merged->mounts.size() == 4);
  const CdiEdits ours = fit_for_job(*merged, CdiNodes::dropped);
  CHECK(ours.nodes.empty());
  CHECK(ours.env == std::vector<std::string>{"DRIVER_ROOT=/"});
  REQUIRE(ours.mounts.size() == 2);
  for (const CdiMount& one : ours.mounts) CHECK(one.host.starts_with("/usr"));
  CHECK(fit_for_job(*merged, CdiNodes::kept).nodes.size() == 3);
}

TEST_CASE(
    "a later folder overrides an earlier one; a name twice in one folder is an error when used") {
  const Folder fixed, made;
  fixed.write("a.json", spec("1.1.0", R"({"env": ["FROM=fixed"]})"));
  fixed.write("b.json", spec("1.1.0", R"({"env": ["FROM=b"]})", "acme.com/fpga", "b"));
  made.write("a.json", spec("1.1.0", R"({"env": ["FROM=made"]})"));
  const CdiRegistry registry = read_cdi(std::vector<std::string>{fixed.path, made.path});
  CHECK(merge_cdi(registry, std::vector<std::string>{"acme.com/fpga=a"})->env ==
        std::vector<std::string>{"FROM=made"});
  CHECK(merge_cdi(registry, std::vector<std::string>{"acme.com/fpga=a", "acme.com/fpga=b"})->env ==
        std::vector<std::string>{"FROM=b"});

  fixed.write("c.json", spec("1.1.0", R"({"env": ["FROM=c"]})", "acme.com/fpga", "b"));
  const CdiRegistry twice = read_cdi(std::vector<std::string>{fixed.path, made.path});
  CHECK(merge_cdi(twice, std::vector<std::string>{"acme.com/fpga=b"}).error().message ==
        fmt::format("CDI device acme.com/fpga=b is in {0}/b.json and {0}/c.json", fixed.path));
  CHECK(merge_cdi(twice, std::vector<std::string>{"acme.com/fpga=a"}));
}

TEST_CASE("a file that others may write is not used") {
  const Folder folder;
  folder.write("a.json", spec("1.1.0", R"({"env": ["A=1"]})"));
  folder.write("bad.json", "{");
  REQUIRE(::chmod((folder.path + "/a.json").c_str(), 0666) == 0);
  const CdiRegistry registry = read_cdi(std::vector<std::string>{folder.path});
  REQUIRE(registry.problems.size() == 2);
  CHECK(registry.problems[0].find("may be written by others than root") != std::string::npos);
  CHECK(registry.devices.empty());
  REQUIRE(::chmod((folder.path + "/a.json").c_str(), 0644) == 0);
  REQUIRE(::chmod(folder.path.c_str(), 0777) == 0);
  CHECK(read_cdi(std::vector<std::string>{folder.path}).devices.empty());
}

}  // namespace
}  // namespace gantry::gpu

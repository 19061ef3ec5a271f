// A daemon that runs jobs as plain processes, registered with a scripted controller.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "tests/noded/launches.h"

namespace gantry::test {

inline proto::Launch launch(FakeController& ctld, std::uint64_t job, const std::string& dir,
                            const std::string& script) {
  return test::launch(ctld, job, dir, script, Uid{::geteuid()});
}

// A node for the other tests: it runs jobs as plain processes, which need no privilege.
class ProcessNode {
 public:
  explicit ProcessNode(Duration heartbeat = FakeController::kHeartbeat) : node(ctld, "process") {
    ctld.heartbeat = heartbeat;
    work = node.dir() + "/work";
    std::filesystem::create_directory(work);
    node.start();
    facts = ctld.accept();
  }
  proto::Launch job(std::uint64_t id, const std::string& script) {
    return launch(ctld, id, work, script);
  }
  void started(std::uint64_t id) {
    ctld.expect<proto::Started>([&](const auto& m) { return m.key == key(id); });
  }
  FakeController ctld;
  NodeUnderTest node;
  std::string work;
  proto::NodeRegister facts;
};

}  // namespace gantry::test

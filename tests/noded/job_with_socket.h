// Declares a job on a node that runs plain processes, and a connection to the job's socket.
#pragma once

#include <doctest/doctest.h>
#include <unistd.h>

#include <optional>
#include <string>

#include "common/net/job_socket_client.h"
#include "tests/eventually.h"
#include "tests/noded/process_node.h"

namespace gantry::test {

// A job that sleeps, and a client connected to its socket.
struct JobWithSocket : ProcessNode {
  std::string path;
  std::optional<net::JobSocketClient> inside;

  explicit JobWithSocket(Duration heartbeat = FakeController::kHeartbeat) : ProcessNode(heartbeat) {
    ctld.send(job(1, "echo $GANTRY_JOB_SOCKET > where; sleep 60\n"));
    started(1);
    eventually([&] { return !(path = read_text(work + "/where")).empty(); });
    path.pop_back();
    connect();
  }
  void end() {
    ctld.send(proto::Terminate{ctld.stamp(), key(1), Duration{}, ""});
    exit_of(ctld, 1);
    ctld.send(proto::AckExit{ctld.stamp(), key(1)});
  }
  void connect() {
    auto connected = net::JobSocketClient::connect(path, seconds(5));
    REQUIRE(connected);
    inside.emplace(std::move(*connected));
  }
  void ask(std::uint16_t type, const Bytes& body) {
    const auto sent = inside->send({proto::kProtocolVersion, type, 77}, body, seconds(5));
    REQUIRE_MESSAGE(sent, (sent ? "" : sent.error().message));
  }
};

}  // namespace gantry::test

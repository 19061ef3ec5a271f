// Runs the core alone with a store in memory: messages go in and replies come out as they do over
// the wire.
#pragma once

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/proto/job_submit.h"
#include "common/proto/session.h"
#include "ctld/core/core.h"
#include "ctld/core/job/submit/blobs.h"
#include "ctld/core/request.h"
#include "ctld/core/state/state.h"
#include "ctld/core/turn_out.h"
#include "ctld/store/memory_store.h"
#include "ctld/store/store.h"

namespace gantry::core::test {

inline Identity identity(std::string user, std::uint32_t uid) {
  Identity who;
  who.owner.uid = Uid(uid);
  who.owner.user = std::move(user);
  if (uid == 0) who.role = proto::Role::admin;
  return who;
}

// Makes `count` nodes n1, n2, ..., all in the partition "main", to which every job goes.
inline Config alike_nodes(std::uint32_t count, std::uint32_t cpus, std::int64_t memory) {
  Config config;
  PartitionConfig partition;
  partition.name = "main";
  partition.is_default = true;
  for (std::uint32_t i = 1; i <= count; ++i) {
    NodeConfig& node = config.nodes.emplace_back();
    node.name = "n" + std::to_string(i);
    node.cpus = cpus;
    node.memory = memory;
    partition.nodes.push_back(node.name);
  }
  config.partitions.push_back(std::move(partition));
  return config;
}

inline proto::SubmitJob batch_job(const std::string& name) {
  proto::SubmitJob m;
  m.spec.name = name;
  m.spec.work_dir = "/home/alice";
  m.script = "#!/bin/sh\ntrue\n";
  return m;
}

inline JobId submitted(const ReplyMessage& reply) {
  const auto* error = reply.get_if<proto::ErrorReply>();
  REQUIRE_MESSAGE(error == nullptr, error->message);
  return reply.get<proto::SubmitReply>().job;
}

// Makes a core that has loaded what is stored and on which start() has not been called yet.
std::unique_ptr<Core> loaded(const Config& config, const store::MemoryStore& store);

class Controller {
 public:
  explicit Controller(Config config)
      : config_(std::move(config)), core_(std::make_unique<Core>(config_)) {
    REQUIRE(core_->start(now_).has_value());
    (void)turn();
  }
  // Restarts the controller with another configuration, as after an edit of its file.
  void restart(Config config) {
    config_ = std::move(config);
    store_.restart();
    core_ = loaded(config_, store_);
    REQUIRE(core_->start(now_).has_value());
    (void)turn();
  }
  ReplyMessage ask(const Identity& who, ClientMessage message) {
    core_->step(now_, ClientRequest{ConnectionId(1), ++request_, who, std::move(message)});
    std::vector<Reply> replies = turn();
    REQUIRE(replies.size() == 1);
    return std::move(replies[0].message);
  }

  // Returns all replies that this message causes now; there may be none yet.
  std::vector<ReplyMessage> ask_many(const Identity& who, ClientMessage message) {
    core_->step(now_, ClientRequest{ConnectionId(1), ++request_, who, std::move(message)});
    std::vector<ReplyMessage> replies;
    for (Reply& reply : turn()) replies.push_back(std::move(reply.message));
    return replies;
  }

  void step(Input input) {
    core_->step(now_, std::move(input));
    (void)turn();
  }
  // Folds, and returns what went into the history.
  std::vector<store::HistoryEntry> fold() {
    store::FoldBatch batch = core_->take_fold();
    REQUIRE(store_.fold(batch).has_value());
    return std::move(batch.history);
  }
  [[nodiscard]] const State& state() const { return core_->state(); }
  [[nodiscard]] Instant now() const { return now_; }
  void pass(Duration time) { now_ = now_ + time; }
  [[nodiscard]] EventSeq last_event() const { return store_.stats().last; }

 private:
  std::vector<Reply> turn() {
    Turn turn = core_->take_turn();
    REQUIRE(store_.append(turn.append).has_value());
    for (Reply& reply : turn.replies) REQUIRE(fill(reply, store_).has_value());
    return std::move(turn.replies);
  }
  Config config_;
  store::MemoryStore store_;
  std::unique_ptr<Core> core_;
  Instant now_{hours(500'000).us};
  std::uint64_t request_ = 0;
};

}  // namespace gantry::core::test

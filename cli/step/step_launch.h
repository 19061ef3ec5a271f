// Starting a step: who accepts its streams, and handing each node its part.
//
// Outside of a container grun listens itself and talks to the nodes by CURVE. Inside one without a
// network both go through the job's socket: the node accepts streams and passes the descriptors.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/step/step_streams.h"
#include "common/proto/step_attach.h"
#include "common/proto/steps.h"
#include "common/result.h"

namespace gantry::cli {

// The listener is bound to the local address that leads to the first node of the permission.
Result<std::unique_ptr<StreamSource>> listen_for_streams(const proto::StepPermission& permission);
// On the job's socket at `path`.
Result<std::unique_ptr<StreamSource>> listen_through_node(const std::string& path);

// Hands `launch` (complete but for its node) to every node of the permission. On an error the nodes
// that had it already give up by themselves, because nobody answers their streams.
Result<void> launch_on_nodes(const proto::StepPermission& permission, proto::LaunchStep launch);
Result<void> launch_through_node(const std::string& path, const proto::StepPermission& permission,
                                 proto::LaunchStep launch);

// The same with `attach`. The nodes (by place in the permission) where nothing of the step runs any
// more, or not yet, are no error: they are given back.
Result<std::vector<std::size_t>> attach_on_nodes(const proto::StepPermission& permission,
                                                 proto::AttachStep attach);
Result<std::vector<std::size_t>> attach_through_node(const std::string& path,
                                                     const proto::StepPermission& permission,
                                                     proto::AttachStep attach);

// Where the nodes bring the streams of a step: to the job's socket if we run in a job that has one,
// else straight here. The key is one for all streams of the step.
class StepDoor {
 public:
  // `permission`: as of listen_for_streams().
  static Result<StepDoor> open(const proto::StepPermission& permission);

  // Tells the node where it finds us: address, ticket and key of LaunchStep or AttachStep.
  template <class Message>
  void tell(Message& message) const {
    message.io_address = source_->address();
    message.io_ticket = source_->ticket();
    message.io_key = key_;
  }
  [[nodiscard]] const Bytes& key() const { return key_; }
  [[nodiscard]] StreamSource& source() const { return *source_; }

  // launch_on_nodes() and attach_on_nodes(), or through the job's socket.
  [[nodiscard]] Result<void> launch(const proto::StepPermission& permission,
                                    proto::LaunchStep launch) const;
  [[nodiscard]] Result<std::vector<std::size_t>> attach(const proto::StepPermission& permission,
                                                        proto::AttachStep attach) const;

 private:
  StepDoor() = default;

  std::optional<std::string> job_socket_;
  std::unique_ptr<StreamSource> source_;
  Bytes key_;
};

}  // namespace gantry::cli

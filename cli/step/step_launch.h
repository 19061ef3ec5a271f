// Starts a step: decides who accepts its streams, and sends each node its part.
//
// Outside of a container grun listens itself and uses CURVE to the nodes. In a container without a
// network both go through the job's socket: the node accepts the streams and passes their
// descriptors.
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

// Listens for streams on the local address from which the first node of the permission is reached.
Result<std::unique_ptr<StreamSource>> listen_for_streams(const proto::StepPermission& permission);
// Lets the node accept the streams, through the job's socket at `path`.
Result<std::unique_ptr<StreamSource>> listen_through_node(const std::string& path);

// Sends `launch` (complete except for its node) to every node of the permission. On an error, nodes
// that already had it give up by themselves, because nobody answers their streams.
Result<void> launch_on_nodes(const proto::StepPermission& permission, proto::LaunchStep launch);
Result<void> launch_through_node(const std::string& path, const proto::StepPermission& permission,
                                 proto::LaunchStep launch);

// Hands `attach` to every node of the permission. It is no error if the step no longer runs on a
// node, or does not run there yet; the indexes of these nodes in the permission are returned.
Result<std::vector<std::size_t>> attach_on_nodes(const proto::StepPermission& permission,
                                                 proto::AttachStep attach);
Result<std::vector<std::size_t>> attach_through_node(const std::string& path,
                                                     const proto::StepPermission& permission,
                                                     proto::AttachStep attach);

// The place to which the nodes connect the streams of a step: the job's socket if this process runs
// in a job that has one, else a socket of its own. All streams of the step use one key.
class StepDoor {
 public:
  // `permission` as for listen_for_streams().
  static Result<StepDoor> open(const proto::StepPermission& permission);

  // Tells the node how to connect: fills in address, ticket and key of LaunchStep or AttachStep.
  template <class Message>
  void tell(Message& message) const {
    message.io_address = source_->address();
    message.io_ticket = source_->ticket();
    message.io_key = key_;
  }
  [[nodiscard]] const Bytes& key() const { return key_; }
  [[nodiscard]] StreamSource& source() const { return *source_; }

  // Does launch_on_nodes() or attach_on_nodes(), or their counterparts through the job's socket; at
  // most `at_once` nodes are asked at a time (0 = all).
  [[nodiscard]] Result<void> launch(const proto::StepPermission& permission,
                                    const proto::LaunchStep& launch, std::size_t at_a_time) const;
  [[nodiscard]] Result<std::vector<std::size_t>> attach(const proto::StepPermission& permission,
                                                        proto::AttachStep attach) const;

 private:
  StepDoor() = default;

  std::optional<std::string> job_socket_;
  std::unique_ptr<StreamSource> source_;
  Bytes key_;
};

}  // namespace gantry::cli

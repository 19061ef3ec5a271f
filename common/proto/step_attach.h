// sattach: an additional reader of a running step. It asks ctld for a StepGranted, which is signed
// for this purpose only, and hands AttachStep to each node, as grun does with LaunchStep (steps.h).
#pragma once

#include <string>
#include <string_view>

#include "common/fields.h"
#include "common/proto/job_ref.h"
#include "common/types.h"

namespace gantry::proto {

// The context with which ctld signs a StepPermission for watching a step. Nothing can be launched
// with such a permission.
inline constexpr std::string_view kStepAttachContext = "gantry step attachment v1";

// Asks to watch what a running step writes; client to ctld. Answered by StepGranted.
struct StepAttach {
  JobRef job;
  StepId step{};
  GANTRY_FIELDS(FIELD(1, job), FIELD(2, step))
};

// Tells the step's shim to connect to this address too; from client to node. From then on the
// step's output is also sent there, beginning with the tasks that have already ended. The step
// never waits for this reader.
struct AttachStep {
  Bytes permission;  // from a StepGranted for this purpose
  Bytes signature;
  std::string node;        // which of the permission's nodes this message is for
  std::string io_address;  // as in LaunchStep
  Bytes io_key;
  Bytes io_ticket;
  GANTRY_FIELDS(FIELD(1, permission), FIELD(2, signature), FIELD(3, node), FIELD(4, io_address),
                FIELD(5, io_key), FIELD(6, io_ticket))
};

}  // namespace gantry::proto

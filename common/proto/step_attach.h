// sattach: one more reader of a running step. It asks ctld for a StepGranted, which is signed for
// this and nothing else, and hands AttachStep to each node, as grun does LaunchStep (steps.h).
#pragma once

#include <string>
#include <string_view>

#include "common/proto/job_ref.h"
#include "common/types.h"

namespace gantry::proto {

// What ctld signs a StepPermission for when it is to see a step: nothing can be launched with it.
inline constexpr std::string_view kStepAttachContext = "gantry step attachment v1";

// Client to ctld: to see what a running step writes. Answered by StepGranted.
struct StepAttach {
  JobRef job;
  StepId step{};
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "step", s.step);
  }
};

// Client to node: the step's shim there is to dial this address as well. What it says from then on,
// and which tasks have ended before, comes there too; nothing waits for it.
struct AttachStep {
  Bytes permission;  // of a StepGranted that is for this
  Bytes signature;
  std::string node;        // which of the permission's nodes this is for
  std::string io_address;  // as in LaunchStep
  Bytes io_key;
  Bytes io_ticket;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "permission", s.permission);
    v(2, "signature", s.signature);
    v(3, "node", s.node);
    v(4, "io_address", s.io_address);
    v(5, "io_key", s.io_key);
    v(6, "io_ticket", s.io_ticket);
  }
};

}  // namespace gantry::proto

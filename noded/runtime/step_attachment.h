// The order to a step's shim to show what the step writes to somebody else as well.
#pragma once

#include <string>

#include "noded/runtime/launch.h"

namespace gantry::runtime {

// Somebody who wants to watch a step that runs here. The file lies in the step's directory until
// the step's shim has taken it; noded sends kAttachSignal to the shim.
struct StepAttachment {
  AttemptKey key;
  StepId step{};
  std::string io_address;  // as in StepRequest
  Bytes io_key;
  Bytes io_ticket;
  bool may_type = false;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "key", s.key);
    v(2, "step", s.step);
    v(3, "io_address", s.io_address);
    v(4, "io_key", s.io_key);
    v(5, "io_ticket", s.io_ticket);
    v(6, "may_type", s.may_type);
  }
};

}  // namespace gantry::runtime

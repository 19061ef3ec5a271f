// The way of a step's standard files to grun: step_io.h's seam over an encrypted stream
// (common/net/secure_stream.h) that the shim dials, with the frames of common/proto/step_io.h.
#pragma once

#include <memory>

#include "noded/shim/step_io.h"

namespace gantry::runtime {

inline constexpr std::size_t kMaxStreamBacklog = 1u
                                                 << 20;  // bytes queued before tasks have to wait

// Dials request.io_address, at most for 10 s. unavailable: nobody is there.
Result<std::unique_ptr<StepIo>> dial_step_stream(const std::string& node,
                                                 const StepRequest& request);

}  // namespace gantry::runtime

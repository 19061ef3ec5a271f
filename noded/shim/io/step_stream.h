// The way of a step's standard files to grun: step_io.h's seam over an encrypted stream
// (common/net/secure_stream.h) that the shim dials, with the frames of common/proto/step_io.h.
#pragma once

#include <memory>

#include "noded/shim/io/step_io.h"

namespace gantry::runtime {

inline constexpr std::size_t kMaxStreamBacklog = 1u
                                                 << 20;  // bytes queued before tasks have to wait

// The same of one who is attached, and loses what goes beyond.
inline constexpr std::size_t kMaxAttachedBacklog = 4u << 20;

// Dials request.io_address, at most for 10 s. unavailable: nobody is there.
Result<std::unique_ptr<StepIo>> dial_step_stream(const std::string& node,
                                                 const StepRequest& request);
// Does not wait for whom it dials; one who is not there is lost() later. finish() does not wait
// either: what is queued goes out with ready().
Result<std::unique_ptr<StepIo>> dial_attached(const std::string& node, const StepRequest& request,
                                              const StepAttachment& attachment);

}  // namespace gantry::runtime

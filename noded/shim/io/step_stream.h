// Carries the standard files of a step's tasks to grun. It implements the seam of step_io.h over an
// encrypted stream (common/net/secure_stream.h) that the shim dials, with the frames of
// common/proto/step_io.h.
#pragma once

#include <memory>

#include "noded/shim/io/step_io.h"

namespace gantry::runtime {

inline constexpr std::size_t kMaxStreamBacklog = 1u
                                                 << 20;  // bytes queued before tasks have to wait

// The same limit for an attached reader, who loses the bytes beyond it.
inline constexpr std::size_t kMaxAttachedBacklog = 4u << 20;

// Dials request.io_address, for at most 10 s. unavailable: nobody answers there.
Result<std::unique_ptr<StepIo>> dial_step_stream(const std::string& node,
                                                 const StepRequest& request);
// Does not wait for the reader that it dials; if nobody is there, lost() becomes true later.
// finish() does not wait either: queued bytes go out with ready().
Result<std::unique_ptr<StepIo>> dial_attached(const std::string& node, const StepRequest& request,
                                              const StepAttachment& attachment);

}  // namespace gantry::runtime

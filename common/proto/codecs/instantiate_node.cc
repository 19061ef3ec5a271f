// Instantiates the codec of every message between the controller and its nodes: only msgpack,
// because nobody sees them as JSON.
#include "common/codec/define.h"
#include "common/proto/messages.h"

namespace gantry {

#define GANTRY_KIND_session(type)
#define GANTRY_KIND_read(type)
#define GANTRY_KIND_write(type)
#define GANTRY_KIND_reply(type)
#define GANTRY_KIND_report(type) GANTRY_CODEC_INSTANTIATE_BINARY(type)
#define GANTRY_KIND_order(type) GANTRY_CODEC_INSTANTIATE_BINARY(type)
#define X(type, number, from, kind, ...) GANTRY_KIND_##kind(proto::type)
#include "common/proto/messages.def"
#undef X

}  // namespace gantry

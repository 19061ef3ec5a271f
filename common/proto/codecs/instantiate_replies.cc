// Instantiates the codec of every message that answers a client.
#include "common/codec/define.h"
#include "common/proto/messages.h"

namespace gantry {

#define GANTRY_KIND_session(type)
#define GANTRY_KIND_read(type)
#define GANTRY_KIND_write(type)
#define GANTRY_KIND_reply(type) GANTRY_CODEC_INSTANTIATE(type)
#define GANTRY_KIND_report(type)
#define GANTRY_KIND_order(type)
#define X(type, number, from, kind, ...) GANTRY_KIND_##kind(proto::type)
#include "common/proto/messages.def"
#undef X

}  // namespace gantry

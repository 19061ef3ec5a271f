// The codec of every message that asks: sessions, reads and writes of clients.
#include "common/codec/define.h"
#include "common/proto/messages.h"

namespace gantry {

#define GANTRY_KIND_session(type) GANTRY_CODEC_INSTANTIATE(type)
#define GANTRY_KIND_read(type) GANTRY_CODEC_INSTANTIATE(type)
#define GANTRY_KIND_write(type) GANTRY_CODEC_INSTANTIATE(type)
#define GANTRY_KIND_reply(type)
#define GANTRY_KIND_report(type)
#define GANTRY_KIND_order(type)
#define X(type, number, sender, kind) GANTRY_KIND_##kind(proto::type)
#include "common/proto/messages.def"
#undef X

}  // namespace gantry

// Instantiates the codec of every request of clients: sessions, reads and writes. Only msgpack,
// because only parts of them are shown (JobSpec).
#include "common/codec/define.h"
#include "common/proto/messages.h"

namespace gantry {

#define GANTRY_KIND_session(type) GANTRY_CODEC_INSTANTIATE_BINARY(type)
#define GANTRY_KIND_read(type) GANTRY_CODEC_INSTANTIATE_BINARY(type)
#define GANTRY_KIND_write(type) GANTRY_CODEC_INSTANTIATE_BINARY(type)
#define GANTRY_KIND_reply(type)
#define GANTRY_KIND_report(type)
#define GANTRY_KIND_order(type)
#define X(type, number, from, kind, ...) GANTRY_KIND_##kind(proto::type)
#include "common/proto/messages.def"
#undef X

}  // namespace gantry

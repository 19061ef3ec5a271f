// A gate without a controller reads its table from a file as JSON.
#include "common/codec/define.h"
#include "common/proto/gate.h"

namespace gantry {

GANTRY_CODEC_INSTANTIATE_FROM_JSON(proto::GateTable)

}  // namespace gantry

// Wire form of what the cache says of an image.
#include "common/codec/define.h"
#include "noded/image/store.h"

GANTRY_CODEC_INSTANTIATE_BINARY(gantry::runtime::ImageRecord)

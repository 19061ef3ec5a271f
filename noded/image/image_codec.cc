// Instantiates the stored form of the cache's records.
#include "common/codec/define.h"
#include "noded/image/store.h"

GANTRY_CODEC_INSTANTIATE(gantry::runtime::ImageRecord)

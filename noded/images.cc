#include "noded/images.h"

#include <fmt/core.h>

#include "common/text/text.h"
#include "noded/image/store.h"

namespace gantry::node {
namespace {

runtime::ImageStore store_of(const NodedConfig& config) {
  return {config.image_cache_dir, {config.image_cache_size, config.image_size, config.image_files}};
}

}  // namespace

void tidy_images(const NodedConfig& config) {
  store_of(config).tidy_up();
}

std::string image_table(const NodedConfig& config) {
  constexpr const char* kRow = "{:<14} {:>9} {:>9} {:<19} {:<6} {}\n";
  std::string out = fmt::format(kRow, "IMAGE", "SIZE", "FILES", "LAST_USED", "IN_USE", "SOURCE");
  std::int64_t total = 0;
  const auto images = store_of(config).list();
  for (const auto& one : images) {
    total += one.record.bytes;
    out += fmt::format(kRow, one.key.substr(0, 14), format_memory_rounded(one.record.bytes),
                       one.record.files, format_time(one.used), one.in_use ? "yes" : "no",
                       one.record.source);
  }
  out += fmt::format("{} images, {} of {}\n", images.size(), format_memory_rounded(total),
                     format_memory_rounded(config.image_cache_size));
  return out;
}

}  // namespace gantry::node

#include "common/resources/mig_draw.h"

#include <algorithm>

#include "common/assert.h"

namespace gantry {

std::string draw_gpu(const DrawnGpu& gpu, std::uint32_t columns) {
  GANTRY_ASSERT(gpu.memory_slices >= 1 && gpu.memory_slices <= 64, "a GPU has 1 to 64 slices");
  GANTRY_ASSERT(columns >= 2 && columns <= 40, "a slice is 2 to 40 columns wide");
  std::string line;
  for (std::uint32_t m = 0; m < gpu.memory_slices; ++m)
    line.append(columns, ((gpu.unusable >> m) & 1) != 0 ? '-' : '.');
  for (const DrawnSlice& s : gpu.slices) {
    GANTRY_ASSERT(s.size >= 1 && s.start + s.size <= gpu.memory_slices, "a slice is in its GPU");
    const std::size_t width = std::size_t{s.size} * columns;
    std::string box(width, ' ');
    const std::size_t label = std::min(s.label.size(), width - 2);
    box.replace(1, label, s.label, 0, label);
    box.front() = s.idle ? '(' : '[';
    box.back() = s.idle ? ')' : ']';
    line.replace(std::size_t{s.start} * columns, width, box);
  }
  return line;
}

}  // namespace gantry

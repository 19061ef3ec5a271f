// A GPU's layout as one line of text: its memory slices from left to right, each as wide as any
// other, so that the GPUs of a node stand in columns below each other.
//
//   [4g.40gb job 17                        ][1g.10gb ][1g.10gb ]..........----------
//
//   [label    ]  a slice; its label is cut where there is no room for it
//   (label    )  a slice that nobody has
//   .......      free memory slices from which something can be made
//   -------      free, but nothing can be made of them beside what there is
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace gantry {

struct DrawnSlice {
  std::uint32_t start = 0, size = 1;  // memory slices
  std::string label;                  // ASCII; "3g.40gb job 17"
  bool idle = false;
};

struct DrawnGpu {
  std::uint32_t memory_slices = 8;  // 1..64
  std::vector<DrawnSlice> slices;   // any order, not overlapping, inside the GPU
  std::uint64_t unusable = 0;       // bits of free memory slices that are of no use now
};

// Always memory_slices * columns characters, without a newline. columns: 2..40 of a memory slice.
std::string draw_gpu(const DrawnGpu& gpu, std::uint32_t columns);

}  // namespace gantry

// Draws the layout of a GPU as one line of text. Its memory slices go from left to right and are
// all equally wide, so that the GPUs of a node line up in columns.
//
//   [4g.40gb job 17                        ][1g.10gb ][1g.10gb ]..........----------
//
//   [label    ]  a slice; its label is cut if it is too long
//   (label    )  a slice that no job holds
//   .......      free memory slices from which a slice can be made
//   -------      free memory slices from which nothing can be made now
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
  std::uint64_t unusable = 0;       // bits of free memory slices that cannot be used now
};

// Returns exactly memory_slices * columns characters, without a newline. `columns` is the width of
// a memory slice, 2..40.
std::string draw_gpu(const DrawnGpu& gpu, std::uint32_t columns);

}  // namespace gantry

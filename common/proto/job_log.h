// Output files of jobs. Client to ctld, and the answer.
#pragma once

#include <cstdint>
#include <string>

#include "common/fields.h"
#include "common/proto/job_ref.h"

namespace gantry::proto {

// Asks for a part of a job's output file; its node reads it as the job's user.
struct ReadLog {
  JobRef job;
  bool std_err = false;
  std::uint64_t offset = 0;
  std::uint32_t max_bytes = 65536;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "job", s.job);
    v(2, "std_err", s.std_err);
    v(3, "offset", s.offset);
    v(4, "max_bytes", s.max_bytes);
  }
};

struct LogChunk {
  Bytes data;
  std::uint64_t offset = 0;  // of data
  bool job_ended = false;    // the job has ended, and nothing will be added
  std::string path;
  template <class Self, class V>
  static void fields(Self& s, V&& v) {
    v(1, "data", s.data);
    v(2, "offset", s.offset);
    v(3, "job_ended", s.job_ended);
    v(4, "path", s.path);
  }
};

}  // namespace gantry::proto

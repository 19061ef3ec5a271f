// Finds the record of each spec and decodes both; see the header.
#include "ctld/core/job_reader.h"

#include <fmt/core.h>

#include "common/codec/codec.h"
#include "ctld/core/apply/load.h"

namespace gantry::core {

tl::unexpected<Error> broken(std::string_view what, const Error& error) {
  return fail(ErrorCode::malformed,
              fmt::format("the store's {} cannot be read: {}", what, error.message));
}

Result<ReadJob> JobReader::spec(JobId id, std::string_view data) {
  while (next_ < records_.size() && records_[next_].first < id) ++next_;  // elements have no spec
  ReadJob job;
  job.id = id;
  job.spec.assign(data.data(), data.size());
  if (next_ == records_.size() || records_[next_].first != id) return job;
  auto record = codec::decode<JobRecord>(records_[next_].second);
  if (!record) return broken(fmt::format("record of job {}", id.value()), record.error());
  auto head = codec::decode<SpecHead>(data);
  if (!head) return broken(fmt::format("spec of job {}", id.value()), head.error());
  records_[next_].second = Bytes();
  job.head = std::move(*head);
  job.record = std::move(*record);
  return job;
}

ReadRest JobReader::rest() {
  std::erase_if(records_, [](const auto& one) { return one.second.empty(); });
  next_ = 0;
  return {std::exchange(records_, {})};
}

}  // namespace gantry::core

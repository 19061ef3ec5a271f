// Fuzzes the readers of texts in common/: host lists, arrays, job ids, lengths, memory and times.
// No bytes may crash them or make them loop for ever. A value that was read and written back must
// read as the same value.
#include <cstdlib>

#include "common/proto/job_text.h"
#include "common/text/hostlist.h"
#include "common/text/text.h"

namespace {

using namespace gantry;

void must(bool holds) {
  if (!holds) std::abort();
}

void host_lists(std::string_view text) {
  const auto names = expand_hostlist(text);
  if (!names) return;
  const auto again = expand_hostlist(compress_hostlist(*names));
  must(again.has_value() && *again == *names);
}

void arrays(std::string_view text) {
  const auto spec = parse_index_ranges(text);
  if (!spec) return;
  const auto again = parse_index_ranges(format_array_spec(*spec));
  must(again.has_value() && *again == *spec);
}

void job_ids(std::string_view text) {
  const auto ref = parse_job_ref(text);
  if (!ref) return;
  const auto again = parse_job_ref(format_job_ref(*ref));
  must(again.has_value() && *again == *ref);
}

void quantities(std::string_view text) {
  if (const auto length = parse_duration(text); length && *length) {
    const auto again = parse_duration(format_duration(**length));
    must(again.has_value() && *again == *length);
  }
  if (const auto bytes = parse_memory(text)) must(parse_memory(format_memory(*bytes)) == *bytes);
  if (const auto signal = parse_signal(text)) (void)signal_name(*signal);
  (void)parse_warn_signal(text);
  const Instant now{1'773'153'000'000'000};
  if (const auto time = parse_time(text, now)) (void)format_time(*time);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  host_lists(text);
  arrays(text);
  job_ids(text);
  quantities(text);
  return 0;
}

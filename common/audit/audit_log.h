// The controller's end of the audit log: appends records to files in one directory, whose names
// begin with "audit-" and the number of their first record. A file of kFileBytes is followed by
// another one. Nothing is ever removed or overwritten, but an unfinished last line, which a crash
// leaves, is cut off; the next record reports that.
//
// Only one thread may use it. After the first error every call returns it, because records after a
// lost one would not be in order.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/audit/audit_line.h"
#include "common/fd.h"

namespace gantry::audit {

inline constexpr std::int64_t kFileBytes = 64 << 20;

class AuditLog {
 public:
  // The directory is made if it does not exist, accessible only for its owner. The error names what
  // is wrong; a wrong hash in the last line is an error, because the chain cannot continue after
  // it.
  static Result<AuditLog> open(const std::string& directory, Instant now);

  // Writes the record with the next number; record.seq is ignored. It is durable after sync().
  Result<void> add(Record record);
  Result<void> sync();
  [[nodiscard]] bool unsynced() const { return unsynced_; }
  [[nodiscard]] std::uint64_t last() const { return seq_; }
  [[nodiscard]] const std::string& head() const { return head_; }

 private:
  explicit AuditLog(std::string directory) : directory_(std::move(directory)) {}
  Result<void> open_file(const std::string& name);
  Result<std::int64_t> find_end(const std::vector<std::string>& files);
  Result<void> go_on_from(std::string_view text, const std::string& file);
  Result<void> next_file();

  std::string directory_;
  Fd file_, folder_;
  std::int64_t bytes_ = 0;  // size of the file
  std::uint64_t seq_ = 0;
  std::string head_{kNoLine};
  bool unsynced_ = false;
  Result<void> state_;
};

}  // namespace gantry::audit

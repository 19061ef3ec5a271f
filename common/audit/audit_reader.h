// Reads an audit log, and checks its chain.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/audit/audit_line.h"

namespace gantry::audit {

// The names of the log's files in order. The error means that the directory cannot be read.
Result<std::vector<std::string>> files_in(const std::string& directory);

struct Chain {
  std::uint64_t records = 0;
  std::uint64_t first = 0, last = 0;  // numbers; older files may be archived elsewhere
  std::string before;                 // `prev` of the first record
  std::string head{kNoLine};          // hash of the last one
};

// Reads all records in their order and calls `each` (which may be empty) for them. The error names
// the first record that is wrong by its file and line: it was changed, its number or `prev` does
// not follow from the one before, or its line is not finished (unless it is the last of all, which
// may be in writing).
Result<Chain> walk(const std::string& directory,
                   const std::function<void(const Record&, std::string_view line)>& each);

// Follows a chain of lines from wherever they come.
class ChainCheck {
 public:
  // The error is a clause about what is wrong with the line, given the lines before it.
  Result<Record> follow(std::string_view line);
  [[nodiscard]] const Chain& chain() const { return chain_; }

 private:
  Chain chain_;
};

struct Page {
  std::vector<std::string> lines;  // whole ones, without their line feed
  bool more = false;               // more records follow
};
// The first records with a higher number than `after`, at most this many lines and bytes. Reads
// little else, however long the log is; hashes are not checked.
Result<Page> page_after(const std::string& directory, std::uint64_t after, std::size_t most,
                        std::size_t most_bytes);
// The same for the newest records.
Result<Page> newest_page(const std::string& directory, std::size_t most, std::size_t most_bytes);

// True if a record has this hash. For heads that were noted earlier.
Result<bool> holds(const std::string& directory, std::string_view hash);

}  // namespace gantry::audit

#include "common/audit/audit_reader.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace gantry::audit {

Result<std::vector<std::string>> files_in(const std::string& directory) {
  std::error_code error;
  std::vector<std::string> out;
  for (std::filesystem::directory_iterator it(directory, error), end; !error && it != end;
       it.increment(error)) {
    std::string name = it->path().filename();
    if (name.starts_with("audit-") && name.ends_with(".jsonl")) out.push_back(std::move(name));
  }
  if (error)
    return fail(ErrorCode::io_error,
                fmt::format("the audit log {} cannot be read: {}", directory, error.message()));
  std::sort(out.begin(), out.end());
  return out;
}

Result<Chain> walk(const std::string& directory,
                   const std::function<void(const Record&, std::string_view line)>& each) {
  const auto files = files_in(directory);
  if (!files) return tl::unexpected(files.error());
  Chain out;
  for (const std::string& name : *files) {
    std::ifstream file(directory + "/" + name);
    if (!file)
      return fail(ErrorCode::io_error, fmt::format("{}/{} cannot be read", directory, name));
    std::string text;
    for (std::uint64_t number = 1; std::getline(file, text); ++number) {
      const auto wrong = [&](const std::string& why) {
        return fail(ErrorCode::malformed,
                    fmt::format("{}/{}: line {} {}", directory, name, number, why));
      };
      const bool unfinished = file.eof();
      if (unfinished && name == files->back()) break;
      const auto line = read_line(text);
      if (!line) return wrong(line.error().message);
      const Record& record = line->record;
      if (out.records > 0 && record.seq != out.last + 1)
        return wrong(
            fmt::format("has record {}, and the one before it is {}", record.seq, out.last));
      if (out.records > 0 && line->prev != out.head)
        return wrong(
            fmt::format("(record {}) does not follow the record before it: that one was "
                        "changed together with its hash",
                        record.seq));
      if (out.records == 0) {
        out.first = record.seq;
        out.before = line->prev;
        if (out.first == 1 && line->prev != kNoLine)
          return wrong("is the first record, and says that another one was before it");
      }
      ++out.records;
      out.last = record.seq;
      out.head = line->hash;
      if (each) each(record, text);
    }
  }
  return out;
}

Result<bool> holds(const std::string& directory, std::string_view hash) {
  bool found = false;
  const auto walked = walk(directory, [&](const Record&, std::string_view line) {
    found = found || line.ends_with(fmt::format("\"hash\":\"{}\"}}", hash));
  });
  if (!walked) return tl::unexpected(walked.error());
  return found;
}

}  // namespace gantry::audit

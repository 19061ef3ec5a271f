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

Result<Record> ChainCheck::follow(std::string_view text) {
  ASSIGN(line, read_line(text));
  const Record& record = line->record;
  const auto wrong = [](std::string why) { return fail(ErrorCode::malformed, std::move(why)); };
  if (chain_.records > 0 && record.seq != chain_.last + 1)
    return wrong(
        fmt::format("has record {}, and the one before it is {}", record.seq, chain_.last));
  if (chain_.records > 0 && line->prev != chain_.head)
    return wrong(
        fmt::format("(record {}) does not follow the record before it: that one was "
                    "changed together with its hash",
                    record.seq));
  if (chain_.records == 0) {
    chain_.first = record.seq;
    chain_.before = line->prev;
    if (chain_.first == 1 && line->prev != kNoLine)
      return wrong("is the first record, and says that another one was before it");
  }
  ++chain_.records;
  chain_.last = record.seq;
  chain_.head = line->hash;
  return std::move(line->record);
}

Result<Chain> walk(const std::string& directory,
                   const std::function<void(const Record&, std::string_view line)>& each) {
  ASSIGN(files, files_in(directory));
  ChainCheck check;
  for (const std::string& name : *files) {
    std::ifstream file(directory + "/" + name);
    if (!file)
      return fail(ErrorCode::io_error, fmt::format("{}/{} cannot be read", directory, name));
    std::string text;
    for (std::uint64_t number = 1; std::getline(file, text); ++number) {
      const bool unfinished = file.eof();
      if (unfinished && name == files->back()) break;
      const auto record = check.follow(text);
      if (!record)
        return fail(ErrorCode::malformed, fmt::format("{}/{}: line {} {}", directory, name, number,
                                                      record.error().message));
      if (each) each(*record, text);
    }
  }
  return check.chain();
}

Result<bool> holds(const std::string& directory, std::string_view hash) {
  bool found = false;
  ASSIGN(walked, walk(directory, [&](const Record&, std::string_view line) {
           found = found || line.ends_with(fmt::format("\"hash\":\"{}\"}}", hash));
         }));
  return found;
}

namespace {

constexpr std::size_t kLook = 64 << 10;  // bytes that are read to find where a line begins

// The bytes from `from` on, at most `most`.
std::string read_at(std::ifstream& file, std::uint64_t from, std::size_t most) {
  std::string out(most, '\0');
  file.clear();
  file.seekg(static_cast<std::streamoff>(from));
  file.read(out.data(), static_cast<std::streamsize>(most));
  out.resize(static_cast<std::size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  return out;
}

// The number of the record in a line, which is its first field; 0 = it has none.
std::uint64_t number_in(std::string_view line) {
  const std::size_t at = line.find_first_of("0123456789");
  std::uint64_t out = 0;
  for (std::size_t i = at; i < line.size() && line[i] >= '0' && line[i] <= '9'; ++i)
    out = out * 10 + static_cast<std::uint64_t>(line[i] - '0');
  return out;
}

// The place in the file from which to search the first record above `after`: the start of a line,
// not after that record.
std::uint64_t offset_of(std::ifstream& file, std::uint64_t bytes, std::uint64_t after) {
  std::uint64_t low = 0, high = bytes;  // a line begins at `low`
  while (high - low > kLook) {
    const std::uint64_t middle = low + (high - low) / 2;
    const std::string text = read_at(file, middle, kLook);
    const std::size_t feed = text.find('\n');
    if (feed == std::string::npos || feed + 1 >= text.size()) return low;
    if (number_in(std::string_view(text).substr(feed + 1)) <= after)
      low = middle + feed + 1;
    else
      high = middle;
  }
  return low;
}

// Adds the lines of one file; false when the page is full.
bool add_lines(std::ifstream& file, std::uint64_t from, std::uint64_t after, std::size_t most,
               std::size_t& bytes_left, Page& out) {
  file.clear();
  file.seekg(static_cast<std::streamoff>(from));
  std::string text;
  while (std::getline(file, text) && !file.eof()) {
    if (number_in(text) <= after) continue;
    if (out.lines.size() >= most || text.size() > bytes_left) {
      out.more = true;
      return false;
    }
    bytes_left -= text.size();
    out.lines.push_back(std::move(text));
  }
  return true;
}

std::uint64_t first_in(const std::string& name) {
  return number_in(name);
}

}  // namespace

Result<Page> page_after(const std::string& directory, std::uint64_t after, std::size_t most,
                        std::size_t most_bytes) {
  ASSIGN(files, files_in(directory));
  Page out;
  for (std::size_t i = 0; i < files->size(); ++i) {
    if (i + 1 < files->size() && first_in((*files)[i + 1]) <= after + 1) continue;
    std::ifstream file(directory + "/" + (*files)[i], std::ios::binary | std::ios::ate);
    if (!file)
      return fail(ErrorCode::io_error, fmt::format("{}/{} cannot be read", directory, (*files)[i]));
    const auto bytes = static_cast<std::uint64_t>(file.tellg());
    if (!add_lines(file, offset_of(file, bytes, after), after, most, most_bytes, out)) return out;
  }
  return out;
}

Result<Page> newest_page(const std::string& directory, std::size_t most, std::size_t most_bytes) {
  ASSIGN(files, files_in(directory));
  Page out;
  for (auto name = files->rbegin(); name != files->rend() && out.lines.size() < most; ++name) {
    std::ifstream file(directory + "/" + *name, std::ios::binary | std::ios::ate);
    if (!file)
      return fail(ErrorCode::io_error, fmt::format("{}/{} cannot be read", directory, *name));
    const auto bytes = static_cast<std::uint64_t>(file.tellg());
    const std::uint64_t from = bytes > most_bytes ? bytes - most_bytes : 0;
    const std::string text = read_at(file, from, most_bytes);
    std::vector<std::string> lines;
    std::size_t at = from == 0 ? 0 : text.find('\n') + 1;
    for (std::size_t feed; (feed = text.find('\n', at)) != std::string::npos; at = feed + 1)
      lines.push_back(text.substr(at, feed - at));
    const std::size_t keep = std::min(lines.size(), most - out.lines.size());
    out.lines.insert(out.lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(keep),
                     lines.end());
    most_bytes -= std::min<std::size_t>(most_bytes, text.size());
    if (from > 0 || most_bytes == 0) break;
  }
  return out;
}

}  // namespace gantry::audit

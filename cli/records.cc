#include "cli/records.h"

#include "common/text/printable.h"

namespace gantry::cli {

RecordWriter& RecordWriter::field(std::string_view key, std::string_view value) {
  return raw(key, value.empty() ? "(null)" : value);
}

RecordWriter& RecordWriter::raw(std::string_view key, std::string_view value) {
  if (!at_start_) text_ += ' ';
  at_start_ = false;
  text_ += key;
  text_ += '=';
  text_ += printable(value);  // values come from users
  return *this;
}

void RecordWriter::line() {
  if (oneline_ || at_start_) return;
  text_ += "\n   ";
  at_start_ = true;
}

void RecordWriter::record() {
  text_ += oneline_ ? "\n" : "\n\n";
  std::fwrite(text_.data(), 1, text_.size(), out_);
  text_.clear();
  at_start_ = true;
}

}  // namespace gantry::cli

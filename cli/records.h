// Slurm's record layout: "JobId=12 JobName=x". Further lines of a record are indented by three, and
// a blank line separates records. With `oneline` each record is one line. An empty value is written
// as "(null)".
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

namespace gantry::cli {

class RecordWriter {
 public:
  RecordWriter(bool oneline, std::FILE* out) : oneline_(oneline), out_(out) {}
  RecordWriter& field(std::string_view key, std::string_view value);
  RecordWriter& field(std::string_view key, std::uint64_t value) {
    return field(key, std::to_string(value));
  }
  RecordWriter& raw(std::string_view key, std::string_view value);  // an empty value stays empty
  void line();    // the next field begins a new line
  void record();  // ends the record and writes it

 private:
  bool oneline_;
  std::FILE* out_;
  std::string text_;
  bool at_start_ = true;
};

}  // namespace gantry::cli

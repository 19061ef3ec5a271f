// The msgpack wire format, value by value: MsgWriter appends to a string, and MsgReader walks
// through a buffer without copying or building a tree. (msgpack-cxx needs 0.75 us only for the
// objects of a submit, half of the time that the whole decoding takes here; tests/wire uses it as
// the reference for the format.)
//
// After the first failure all calls of MsgReader return false, with the error in error().
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/codec/decode_error.h"
#include "common/codec/limits.h"
#include "common/types.h"

namespace gantry::codec {

class MsgWriter {
 public:
  explicit MsgWriter(Bytes& out) : out_(out) {}

  void boolean(bool value) { out_.push_back(value ? '\xc3' : '\xc2'); }
  void nil() { out_.push_back('\xc0'); }
  void uint(std::uint64_t value) {
    if (value < 0x80)
      out_.push_back(static_cast<char>(value));
    else
      long_uint(value);
  }
  void sint(std::int64_t value) {
    if (value >= 0)
      uint(static_cast<std::uint64_t>(value));
    else
      negative(value);
  }
  void real(double value);
  void string(std::string_view value);
  void array(std::uint32_t size) { head(size, 0x90, 0xdc); }
  void map(std::uint32_t size) { head(size, 0x80, 0xde); }

  // Begins a map whose size is known only later: at most `most` entries, ended by end_map(mark,
  // count).
  struct Mark {
    std::size_t at;
    bool wide;
  };
  Mark begin_map(int most);
  void end_map(Mark mark, int count);

 private:
  void long_uint(std::uint64_t value);
  void negative(std::int64_t value);
  void head(std::uint32_t size, unsigned fix, unsigned wide);
  template <class T>
  void tagged(unsigned tag, T value);

  Bytes& out_;
};

class MsgReader {
 public:
  explicit MsgReader(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  bool boolean(bool& out);
  bool uint(std::uint64_t& out, std::uint64_t max);
  bool sint(std::int64_t& out, std::int64_t min, std::int64_t max);
  bool real(double& out);
  bool string(std::string_view& out);  // str or bin; `out` points into the buffer
  bool array(std::uint32_t& size);     // refused if fewer bytes are left than elements
  bool map(std::uint32_t& size);
  bool field_number(std::uint64_t& out);
  bool skip();      // skips one value of any type
  bool skip_nil();  // skips nil if it comes next; true if it did
  bool enter();     // goes one level deeper; false beyond kMaxDepth
  void leave() { --depth_; }
  bool charge(std::size_t bytes);  // counts towards kMaxDecodedBytes
  [[nodiscard]] bool at_end() const { return at_ == end_; }
  [[nodiscard]] DecodeError& error() { return error_; }

 private:
  struct Integer {
    std::uint64_t value = 0;
    bool negative = false;  // value is then the two's complement
  };
  bool integer(Integer& out, const char* expected);
  template <class T>
  bool take(T& out);
  bool take_bytes(std::size_t count, std::string_view& out);
  bool size_of(unsigned tag, bool is_map, std::uint32_t& size);
  bool truncated() { return error_.fail("the message is cut short"); }

  const char* at_;
  const char* end_;
  int depth_ = 0;
  std::size_t decoded_ = 0;
  DecodeError error_;
};

}  // namespace gantry::codec

// The msgpack wire format, value by value: MsgWriter appends to a string, and MsgReader walks
// through a buffer without copying or building a tree. (msgpack-cxx needs 0.75 us only for the
// objects of a submit, half of the time that the whole decoding takes here; tests/wire uses it as
// the reference for the format.)
//
// After the first failure all calls of MsgReader return false, with the error in error().
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/codec/decode_error.h"
#include "common/codec/limits.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::codec {

class MsgWriter {
 public:
  explicit MsgWriter(Bytes& out)
      : out_(out), begun_(out.size()), at_(out.data() + begun_), end_(at_) {}
  ~MsgWriter() { out_.resize(size()); }
  MsgWriter(const MsgWriter&) = delete;
  MsgWriter& operator=(const MsgWriter&) = delete;

  void boolean(bool value) { byte(value ? 0xc3 : 0xc2); }
  void nil() { byte(0xc0); }
  void uint(std::uint64_t value) {
    if (value < 0x80)
      byte(static_cast<unsigned>(value));
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
  Mark begin_map(std::size_t most);
  void end_map(Mark mark, unsigned count);

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(at_ - out_.data()); }
  void cut(std::size_t size) { at_ = out_.data() + size; }  // removes what was written after this

 private:
  void long_uint(std::uint64_t value);
  void negative(std::int64_t value);
  void head(std::uint32_t size, unsigned fix, unsigned wide);
  template <class T>
  void tagged(unsigned tag, T value);
  void byte(unsigned value) {
    if (at_ == end_) grow(1);
    *at_++ = static_cast<char>(value);
  }
  void need(std::size_t count) {
    if (static_cast<std::size_t>(end_ - at_) < count) grow(count);
  }
  void grow(std::size_t count);

  Bytes& out_;         // longer than what was written, until the destructor
  std::size_t begun_;  // bytes of `out` when this began
  char* at_;
  char* end_;
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

struct TypeInfo;  // type_info.h

// Reads one value of this type. If it returns false, the reader has the error.
bool read_value(MsgReader& r, const TypeInfo& type, void* out);
// Reads a whole message: `read_all` must take all of `bytes`. The error is always malformed.
std::optional<Error> decode_whole(std::string_view bytes,
                                  const std::function<bool(MsgReader&)>& read_all);

}  // namespace gantry::codec

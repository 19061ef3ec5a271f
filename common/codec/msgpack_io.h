// The msgpack wire format, value by value: MsgWriter appends to a string, and MsgReader walks
// through a buffer without copying or building a tree. (msgpack-cxx needs 0.75 us only for the
// objects of a submit, half of the time that the whole decoding takes here; tests/wire uses it as
// the reference for the format.)
//
// After the first failure all calls of MsgReader return false, with the error in error().
#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "common/codec/decode_error.h"
#include "common/codec/limits.h"
#include "common/result.h"
#include "common/types.h"

namespace gantry::codec {

// Until it is destroyed, or the first kFirst bytes are full, what it writes is not in `out`.
class MsgWriter {
 public:
  explicit MsgWriter(Bytes& out)
      : at_(first_), out_(out), begun_(out.size()), base_(first_), end_(first_ + kFirst) {}
  ~MsgWriter() {
    if (base_ == first_)
      out_.append(first_, size());
    else
      out_.resize(begun_ + size());
  }
  MsgWriter(const MsgWriter&) = delete;
  MsgWriter& operator=(const MsgWriter&) = delete;

  void boolean(bool value) { byte(value ? 0xc3 : 0xc2); }
  void nil() { byte(0xc0); }
  void uint(std::uint64_t value) {
    need(kLongest);
    at_ = put(at_, value);
  }
  void sint(std::int64_t value) {
    need(kLongest);
    at_ = put(at_, value);
  }
  void real(double value);
  void string(std::string_view value) {
    need(kLongest + value.size());
    char* at = at_;
    if (value.size() < 32)
      *at++ = static_cast<char>(0xa0 | value.size());
    else
      at = put_long_string(at, value.size());
    if (!value.empty()) std::memcpy(at, value.data(), value.size());
    at_ = at + value.size();
  }
  void array(std::uint32_t size) { head(size, 0x90, 0xdc); }
  void map(std::uint32_t size) { head(size, 0x80, 0xde); }

  // Begins a map whose size is known only later: at most `most` entries, ended by
  // close_map(mark, count).
  struct Mark {
    std::size_t at;
    bool wide;
  };
  Mark open_map(std::size_t most) {
    const Mark mark{size(), most > 15};
    need(3);
    at_ += mark.wide ? 3 : 1;
    return mark;
  }
  void close_map(Mark mark, unsigned count) {
    char* at = base_ + mark.at;
    if (mark.wide) {
      at[0] = '\xde';
      at[1] = static_cast<char>(count >> 8);
      at[2] = static_cast<char>(count);
    } else {
      at[0] = static_cast<char>(0x80 | count);
    }
  }

  [[nodiscard]] std::size_t size() const { return static_cast<std::size_t>(at_ - base_); }
  void cut(std::size_t size) { at_ = base_ + size; }  // removes what was written after this

 protected:
  static constexpr std::size_t kLongest = 9;  // a tag and eight bytes
  void need(std::size_t count) {
    if (static_cast<std::size_t>(end_ - at_) < count) grow(count);
  }
  // Writes a number where there is room for kLongest bytes; returns where it ends.
  static char* put(char* at, std::uint64_t value) {
    if (value >= 0x80) return put_long(at, value);
    *at = static_cast<char>(value);
    return at + 1;
  }
  static char* put(char* at, std::int64_t value) {
    return value >= 0 ? put(at, static_cast<std::uint64_t>(value)) : put_negative(at, value);
  }
  char* at_;

 private:
  static constexpr std::size_t kFirst = 512;

  void head(std::uint32_t size, unsigned fix, unsigned wide) {
    if (size < 16) return byte(fix | size);
    need(kLongest);
    at_ = put_long_head(at_, size, wide);
  }
  void byte(unsigned value) {
    need(1);
    *at_++ = static_cast<char>(value);
  }
  void grow(std::size_t count);
  static char* put_long(char* at, std::uint64_t value);
  static char* put_negative(char* at, std::int64_t value);
  static char* put_long_string(char* at, std::size_t size);
  static char* put_long_head(char* at, std::uint32_t size, unsigned wide);

  Bytes& out_;
  std::size_t begun_;  // bytes of `out` when this began
  char* base_;         // where what was written begins: first_, or in `out`
  char* end_;
  char first_[kFirst];
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

// Reads the lines that HAProxy's processes write of requests, over a unix socket: each process has
// a connection, by which it sends them in large pieces. If the gate is away, HAProxy keeps some
// thousand lines for it.
#pragma once

#include <functional>
#include <list>
#include <string>

#include "common/fd.h"
#include "common/loop/loop.h"
#include "common/result.h"

namespace gantry::gate {

class LogReader {
 public:
  using OnLine = std::function<void(std::string_view line)>;
  // `writer` is the user of HAProxy: who else connects is not listened to, unless it is root.
  static Result<std::unique_ptr<LogReader>> open(loop::Loop& loop, const std::string& path,
                                                 unsigned writer, OnLine on_line);

 private:
  struct Writer {
    Fd fd;
    loop::Watch watch;
    std::string begun;  // a line whose end has not come yet
  };
  LogReader(loop::Loop& loop, unsigned writer, OnLine on_line)
      : loop_(loop), writer_(writer), on_line_(std::move(on_line)) {}
  void take();
  void read(Writer& writer);

  loop::Loop& loop_;
  unsigned writer_;
  OnLine on_line_;
  Fd listening_;
  std::list<Writer> writers_;
  loop::Watch accepting_;
};

}  // namespace gantry::gate

// A source of messages with an edge-triggered descriptor, like a ZeroMQ socket. The loop may block
// on the descriptor only after readable() has returned false.
#pragma once

namespace gantry::loop {

class QueueSource {
 public:
  virtual ~QueueSource() = default;
  [[nodiscard]] virtual int descriptor() const = 0;
  [[nodiscard]] virtual bool readable() = 0;

 protected:
  QueueSource() = default;
  QueueSource(const QueueSource&) = default;
  QueueSource(QueueSource&&) = default;
  QueueSource& operator=(const QueueSource&) = default;
  QueueSource& operator=(QueueSource&&) = default;
};

}  // namespace gantry::loop

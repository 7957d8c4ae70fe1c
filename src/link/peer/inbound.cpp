// A transfer as its reader has it: slots that are polled, or what its sender exposes.

#include <atomic>
#include <utility>

#include "link/peer/peer_link.hpp"
#include "link/slots/slot_reader.hpp"

namespace mpress::link {

class PeerLink::Reader final : public SlotReader {
 public:
  Reader(PeerLink& link, const Expected& expected)
      : SlotReader(link, expected), peer_(link), gets_(link.gets_) {}

  gpu::State poll(std::uint64_t chunk, Arrived& arrived) override {
    if (other_) return other_->poll(chunk, arrived);
    if (chunk > 0 && !exposed_.data) return SlotReader::poll(chunk, arrived);
    if (is_broken()) return gpu::State::failed;
    if (exposed_.data) return poll_exposed(chunk, arrived);
    const Arrival found = look(0);
    if (found.state == Slot::offered) return get(arrived);
    block_ = found.block;
    if (found.state == Slot::by_mpi) return turn_to_other();
    return arrive(found, 0, arrived);
  }

  const char* problem() const override {
    return other_ ? other_->problem() : SlotReader::problem();
  }

  void acknowledge(std::uint64_t chunks) override {
    if (!other_ && !exposed_.data) SlotReader::acknowledge(chunks);
  }

  void finish(bool by_flag) override {
    if (exposed_.data) {
      finish_exposed(by_flag);
      return;
    }
    if (other_) other_->finish(by_flag);
    gets_.open_block(expected_.rank, std::exchange(block_, 0), expected_.device);
    acknowledge(expected_.chunks);
  }

  void give_up() override {
    if (!other_) SlotReader::give_up();
  }

  void await() override {
    is_awaited_ = true;
    if (other_) other_->await();
  }

  /// What is exposed stays its sender's only once it is acknowledged; devices do that by the flag.
  bool needs_host() const override { return exposed_.data && !flag_ && !is_returned_; }

  trace::Way way() const override {
    if (other_) return other_->way();
    return exposed_.data ? trace::Way::direct : SlotReader::way();
  }

 private:
  gpu::State turn_to_other() {
    SlotReader::acknowledge(1);
    Expected by_other = expected_;
    by_other.route.kind = expected_.other->kind();
    other_ = expected_.other->receive(by_other);
    if (is_awaited_) other_->await();
    return gpu::State::pending;
  }

  /// Takes what is offered. Pending where it is not any more, or it is not its turn. The sender
  /// waits then, so the device tells by itself when it has read all, where it can: nothing that the
  /// program does next holds this up.
  gpu::State get(Arrived& arrived) {
    const std::uint64_t first = slot_of(0);
    const std::uint64_t now_ns = trace::now_ns();
    if (found_ns_ == 0) found_ns_ = now_ns;
    if (!gets_.is_turn(expected_.rank, first, expected_.bytes(), found_ns_, now_ns)) {
      return gpu::State::pending;
    }
    const Arrival found = gets_.get(expected_.rank, first, expected_.device, expected_.bytes());
    if (found.state == Slot::planned) return gpu::State::pending;
    peer_.is_used_.store(true, std::memory_order_relaxed);
    if (found.state == Slot::failed) {
      peer_.acknowledge(expected_.rank, first);  // which the sender looks at alone
      leave_slots();
      return fail();
    }
    exposed_ = found;
    if (found.device == expected_.device && !is_awaited_) {
      flag_ = gets_.acknowledge_flag(expected_.rank, first, expected_.device);
    }
    return poll_exposed(0, arrived);
  }

  /// All of it, or, where it has to be copied first, a chunk.
  gpu::State poll_exposed(std::uint64_t chunk, Arrived& arrived) {
    if (exposed_.device == expected_.device) {
      arrived = {exposed_.data, expected_.bytes(), exposed_.device, false, expected_.chunks, flag_};
    } else {
      arrived = {exposed_.data + chunk * expected_.chunk_bytes, expected_.bytes_of(chunk),
                 exposed_.device};
    }
    return gpu::State::done;
  }

  void finish_exposed(bool by_flag) {
    if (std::exchange(is_returned_, true) || (flag_ && by_flag)) return;
    if (flag_) {
      gets_.acknowledge_once(expected_.rank, slot_of(0), exposed_.serial);
    } else {
      peer_.acknowledge(expected_.rank, slot_of(0));
    }
  }

  PeerLink& peer_;
  Gets& gets_;
  std::uint64_t found_ns_ = 0;     ///< when an offer was
  std::uint32_t block_ = 0;        ///< to be opened
  Arrival exposed_{};              ///< all of the message; no data: it is not
  std::uint32_t* flag_ = nullptr;  ///< for the device to tell when it is done with that
  bool is_returned_ = false;
  bool is_awaited_ = false;
  std::unique_ptr<Inbound> other_;  ///< of chunks that come by MPI, where the sender had no memory
};

std::unique_ptr<Inbound> PeerLink::receive(const Expected& expected) {
  return std::make_unique<Reader>(*this, expected);
}

}  // namespace mpress::link
